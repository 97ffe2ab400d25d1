"""A prepared dataset of edition corrected may carry a canary, which changes nothing else and is on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.engine.datasets.plans import Options
from mlebench_console.engine.datasets.prepared import canaries, manifest
from mlebench_console.engine.datasets.prepared.verification import check, verify
from mlebench_console.engine.layout import DatasetFolder, dataset_folder
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from tests.conformance.trees import VECTORS, Vector
from tests.engine.datasets.test_preparing import tree

ID = "spaceship-titanic"
COMPETITION = registry.get(ID)


def prepared(tmp_path: Path, name: str, *, canary: bool) -> DatasetFolder:
    raw = Vector(VECTORS / ID).unpack_raw(tmp_path / f"raw-{name}")
    data_dir = tmp_path / name
    prepare_competition(ID, data_dir=data_dir, raw=raw, edition="corrected", canary=canary)
    return dataset_folder(COMPETITION, data_dir, "corrected")


def test_a_canary_is_on_record_and_changes_nothing_else(tmp_path: Path) -> None:
    plain = prepared(tmp_path, "plain", canary=False)
    marked, again = (prepared(tmp_path, name, canary=True) for name in ("marked", "again"))
    assert canaries.canaries_in(tmp_path / "plain") == {}
    ((canary, competition_id),) = canaries.canaries_in(tmp_path / "marked").items()
    assert competition_id == ID
    assert canary not in canaries.canaries_in(tmp_path / "again")
    text = (marked.public / canaries.FILE).read_bytes()
    assert canaries.PATTERN.findall(text) == [canary.encode()]

    without, having = tree(plain.prepared), tree(marked.prepared)
    told = {f"public/{canaries.FILE}", "manifest.jsonl", ".complete.json"}
    assert having.keys() - without.keys() == {f"public/{canaries.FILE}"}
    assert {name for name in without if without[name] != having[name]} == told - {f"public/{canaries.FILE}"}

    listed = manifest.of_dataset(marked)
    assert listed is not None
    assert listed.properties == {canaries.PROPERTY: canary}
    assert f"public/{canaries.FILE}" in {entry.path for entry in listed.entries}
    assert verify(COMPETITION, marked, deep=True).differences == ""
    assert check(COMPETITION, marked, canary=True) == ""
    assert check(COMPETITION, plain, canary=True) == "it has no canary"
    (again.public / canaries.FILE).unlink()
    assert canaries.FILE in verify(COMPETITION, again).differences


def test_edition_v1_never_carries_one(tmp_path: Path) -> None:
    raw = Vector(VECTORS / ID).unpack_raw(tmp_path / "raw")
    with pytest.raises(UsageProblem, match=r"edition v1 can.t have a canary"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, canary=True)
    assert not (tmp_path / "data" / ID / "prepared").exists()


def test_data_with_a_file_of_that_name_keep_it(tmp_path: Path) -> None:
    (tmp_path / canaries.FILE).write_text("a bird")
    with pytest.raises(DataProblem, match=r"have a file canary\.txt"):
        canaries.write(tmp_path)
    assert (tmp_path / canaries.FILE).read_text() == "a bird"


def test_the_wish_for_one_is_kept_with_the_dataset() -> None:
    assert Options.from_text(Options(canary=True).to_text()).canary
    assert not Options.from_text('{"source": ""}').canary
