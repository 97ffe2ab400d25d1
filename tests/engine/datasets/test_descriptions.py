"""The operator chooses whose description an agent finds beside the data, and reports say which it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console import grade_submission, prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.descriptions import description, obfuscated_description
from mlebench_console.engine.datasets.prepared.descriptions import check_choice, chosen_texts
from mlebench_console.engine.layout import MARKER
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from tests.conformance.trees import VECTORS, Vector

ID = "spaceship-titanic"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return Vector(VECTORS / ID).unpack_raw(tmp_path / "raw")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of descriptions, as a checkout of the benchmark has them."""
    (tmp_path / "mine" / ID).mkdir(parents=True)
    (tmp_path / "mine" / ID / "description.md").write_text("# Mine\n", encoding="utf-8")
    return tmp_path / "mine"


def used(prepared: Path) -> str:
    """What the report of a submission says of the description."""
    data_dir = prepared.parents[1]
    return grade_submission(prepared / "public" / "sample_submission.csv", ID, data_dir=data_dir).descriptions


def test_ours_is_put_beside_the_data_unless_told_otherwise(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    text = (prepared / "public" / "description.md").read_text(encoding="utf-8")
    assert text == description(registry.get(ID), "v1")
    assert used(prepared) == "ours"


def test_the_obfuscated_one_is_put_in_its_place(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, descriptions="obfuscated")
    text = (prepared / "public" / "description.md").read_text(encoding="utf-8")
    assert text == obfuscated_description(registry.get(ID), "v1")
    assert "Spaceship" not in text
    assert used(prepared) == "obfuscated"


def test_one_from_a_folder_is_put_in_its_place(tmp_path: Path, raw: Path, mine: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, descriptions=str(mine))
    assert (prepared / "public" / "description.md").read_text(encoding="utf-8") == "# Mine\n"
    assert used(prepared) == str(mine)


def test_a_folder_may_hold_files_named_by_id(tmp_path: Path) -> None:
    (tmp_path / f"{ID}.md").write_text("# By id\n", encoding="utf-8")
    assert chosen_texts(registry.get(ID), "v1", str(tmp_path)) == {"public/description.md": "# By id\n"}


def test_what_a_folder_lacks_is_told_before_anything_is_done(tmp_path: Path, raw: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataProblem, match=rf"{ID}: there is no description in .*empty"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, descriptions=str(tmp_path / "empty"))
    assert not (tmp_path / "data" / ID / "prepared").exists()


def test_text_that_is_not_utf_8_is_told(mine: Path) -> None:
    (mine / ID / "description.md").write_bytes(b"\xff\xfe")
    with pytest.raises(DataProblem, match="is not UTF-8 text"):
        chosen_texts(registry.get(ID), "v1", str(mine))


def test_a_choice_that_is_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="it is neither a known name nor a folder"):
        check_choice(str(tmp_path / "nowhere"))


def test_a_folder_is_named_so_that_others_find_it(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)
    assert check_choice("mine") == str(mine)


def test_what_another_program_prepared_has_an_unknown_description(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    (prepared / MARKER).unlink()
    assert used(prepared) == "unknown"


def test_a_report_in_full_tells_edition_defects_and_description(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, edition="corrected")
    sample = prepared / "public" / "sample_submission.csv"
    report = grade_submission(sample, ID, data_dir=tmp_path / "data", edition="corrected")
    told = report.to_dict(extended=True)
    assert (told["edition"], told["descriptions"]) == ("corrected", "ours")
    assert told["defects"] == list(registry.get(ID).defects_in("corrected"))
    assert "descriptions" not in report.to_dict()
