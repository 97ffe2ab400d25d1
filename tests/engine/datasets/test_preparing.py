"""A preparation ends whole or leaves everything as it was, and refuses raw data that is not in the expected form."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlebench_console import grade_submission, prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.engine import layout
from mlebench_console.engine.claims import Claimed, claimed
from mlebench_console.engine.datasets import preparing
from mlebench_console.engine.layout import dataset_folder, is_prepared
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, UsageProblem
from tests.conformance.trees import VECTORS, Vector

ID = "spaceship-titanic"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return Vector(VECTORS / ID).unpack_raw(tmp_path / "raw")


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_raw_is_left_untouched(tmp_path: Path, raw: Path) -> None:
    before = tree(raw)
    raw_times = {path: path.stat().st_mtime_ns for path in raw.rglob("*")}
    prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    assert tree(raw) == before
    assert {path: path.stat().st_mtime_ns for path in raw.rglob("*")} == raw_times


def test_no_time_of_a_file_tells_agents_where_it_came_from(tmp_path: Path) -> None:
    raw = Vector(VECTORS / "paddy-disease-classification").unpack_raw(tmp_path / "raw")
    prepared = prepare_competition("paddy-disease-classification", data_dir=tmp_path / "data", raw=raw)
    files = [path for path in (prepared / "public").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert len({path.stat().st_mtime_ns for path in [prepared / "public", *files]}) == 1


@pytest.mark.parametrize("competition_id", ["leaf-classification", "spooky-author-identification"])
def test_inner_archives_are_not_extracted_into_raw(tmp_path: Path, competition_id: str) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    before = tree(raw)
    prepare_competition(competition_id, data_dir=tmp_path / "data", raw=raw)
    assert tree(raw) == before


def test_the_description_is_put_beside_the_data(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    text = (prepared / "public" / "description.md").read_text()
    assert text == registry.get(ID).description_path.read_text()


def test_the_layout_is_that_of_mle_bench(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    assert prepared == tmp_path / "data" / ID / "prepared"
    competition, folder = registry.get(ID), dataset_folder(registry.get(ID), tmp_path / "data")
    assert is_prepared(competition, folder)
    folder.marker.unlink()  # as MLE-bench leaves it
    assert is_prepared(competition, folder)
    assert layout.prepared_with(folder) is None
    (prepared / "public" / "sample_submission.csv").unlink()
    assert not is_prepared(competition, folder)


def test_the_default_place_is_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert layout.default_data_dir() == tmp_path / "mle-bench" / "data"


def test_editions_do_not_share_a_folder(tmp_path: Path, raw: Path) -> None:
    first = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    before = tree(first)
    second = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, edition="corrected")
    assert second.name == "prepared-corrected"
    assert tree(first) == before
    marker = layout.prepared_with(dataset_folder(registry.get(ID), tmp_path / "data", "corrected"))
    assert marker is not None and marker["edition"] == "corrected"


def test_parameters_replace_numbers_and_are_told_by_the_marker(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, parameters={"test_size": 3})
    assert len((prepared / "private" / "test.csv").read_text().splitlines()) == 4
    marker = json.loads((prepared / ".complete.json").read_text())
    assert marker["parameters"] == {"test_size": 3, "seed": 0}
    assert marker["private"].keys() == {"test.csv"}
    with pytest.raises(UsageProblem, match="no parameter nope"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw, parameters={"nope": 1})


def test_a_failed_preparation_leaves_the_old_data(
    tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    before = tree(prepared)

    def fail(job: Any) -> None:
        (job.public / "half.csv").write_text("half")
        raise DataProblem("train.csv is damaged")

    monkeypatch.setattr(preparing, "load_task", lambda competition: SimpleNamespace(prepare=fail))
    with pytest.raises(DataProblem, match="damaged"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    assert tree(prepared) == before
    assert [path.name for path in prepared.parent.iterdir() if path.name.endswith(".partial")] == []


def test_a_missing_raw_file_is_named_and_nothing_is_left(tmp_path: Path, raw: Path) -> None:
    (raw / "train.csv").unlink()
    with pytest.raises(DataProblem, match=r"train\.csv is missing"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    assert not (tmp_path / "data" / ID / "prepared").exists()
    assert [path.name for path in (tmp_path / "data" / ID).iterdir()] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from mlebench_console.engine.datasets import preparing
before, after = preparing.Path.rename, sys.argv[3]
seen = []
def rename(self, target):
    if after == str(len(seen)):
        os.kill(os.getpid(), signal.SIGKILL)
    seen.append(target)
    return before(self, target)
preparing.Path.rename = rename
preparing.prepare("spaceship-titanic", data_dir=sys.argv[1], options=preparing.PreparationOptions(sys.argv[2]))
"""


@pytest.mark.parametrize(("was_there", "renames_before_the_kill"), [(False, 0), (True, 0), (True, 1)])
def test_a_kill_leaves_nothing_that_the_next_run_does_not_resolve(
    tmp_path: Path, raw: Path, was_there: bool, renames_before_the_kill: int
) -> None:
    data = tmp_path / "data"
    if was_there:
        prepare_competition(ID, data_dir=data, raw=raw)
    command = [sys.executable, "-c", KILLED, str(data), str(raw), str(renames_before_the_kill)]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list((data / ID).glob(".prepared.*.partial"))
    prepared = prepare_competition(ID, data_dir=data, raw=raw)
    assert is_prepared(registry.get(ID), dataset_folder(registry.get(ID), data))
    assert sorted(path.name for path in prepared.parent.iterdir()) == ["prepared"]


def test_a_kill_between_two_renames_loses_no_finished_work(tmp_path: Path, raw: Path) -> None:
    data = tmp_path / "data"
    prepare_competition(ID, data_dir=data, raw=raw)
    subprocess.run([sys.executable, "-c", KILLED, str(data), str(raw), "1"], capture_output=True)
    (raw / "train.csv").unlink()
    with pytest.raises(DataProblem):
        prepare_competition(ID, data_dir=data, raw=raw)
    assert is_prepared(registry.get(ID), dataset_folder(registry.get(ID), data))


def test_one_dataset_is_prepared_by_one_process(tmp_path: Path, raw: Path) -> None:
    folder = dataset_folder(registry.get(ID), tmp_path / "data")
    folder.root.mkdir(parents=True)
    with claimed(folder.claim, ID), pytest.raises(Claimed, match="another process"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)


def test_kaggles_zip_is_used_where_it_lies(tmp_path: Path, raw: Path) -> None:
    folder = tmp_path / "data" / ID
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / f"{ID}.zip", "w") as archive:
        for path in raw.iterdir():
            archive.write(path, path.name)
    known = registry.get(ID).checksums.zip
    with pytest.raises(
        DataProblem, match=f"{ID}.zip does not match the known checksum: expected MD5 {known}"
    ):
        prepare_competition(ID, data_dir=tmp_path / "data")
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", verify=False)
    assert (prepared / "private" / "test.csv").is_file()
    assert {path.name for path in folder.iterdir()} == {"prepared", f"{ID}.zip"}


def test_an_extracted_raw_folder_is_used_where_it_lies(tmp_path: Path, raw: Path) -> None:
    folder = tmp_path / "data" / ID
    folder.mkdir(parents=True)
    raw.rename(folder / "raw")
    before = tree(folder / "raw")
    prepare_competition(ID, data_dir=tmp_path / "data", verify=False)
    assert tree(folder / "raw") == before


def test_real_data_must_have_the_known_checksums(tmp_path: Path, raw: Path) -> None:
    folder = tmp_path / "data" / ID
    folder.mkdir(parents=True)
    raw.rename(folder / "raw")
    known = registry.get(ID).checksums.public["sample_submission.csv"]
    with pytest.raises(DataProblem, match=f"the known checksum: expected MD5 {known}, found [0-9a-f]{{32}}"):
        prepare_competition(ID, data_dir=tmp_path / "data")
    assert not (folder / "prepared").exists()


def test_without_raw_data_the_next_step_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"no Kaggle credentials were found\n.*kaggle\.com"):
        prepare_competition(ID, data_dir=tmp_path / "data")
    with pytest.raises(DataProblem, match="were not found"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=tmp_path / "nowhere")


def test_an_unknown_competition_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="not known"):
        prepare_competition("titanic", data_dir=tmp_path / "data")
    with pytest.raises(UsageProblem, match="not known"):
        grade_submission(None, "titanic", data_dir=tmp_path / "data")


@pytest.fixture(autouse=True)
def _readable_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_an_agents_user_can_read_what_was_prepared(tmp_path: Path, raw: Path) -> None:
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    for path in (prepared, *prepared.rglob("*")):
        assert path.stat().st_mode & 0o004, path


def test_importing_the_interface_costs_nothing() -> None:
    program = "import sys, mlebench_console\n"
    program += "print({'numpy', 'pandas', 'mlebench_console.competitions.judging'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_what_a_task_did_not_think_of_is_told_with_the_competition(
    tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(job: Any) -> None:
        raise KeyError("depth")

    monkeypatch.setattr(preparing, "load_task", lambda competition: SimpleNamespace(prepare=prepare))
    with pytest.raises(
        DataProblem, match=r"spaceship-titanic: the data can.t be prepared from .*KeyError: 'depth'"
    ):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    assert not (tmp_path / "data" / ID / "prepared").exists()


def test_a_declared_file_that_the_task_did_not_write_is_told_with_its_key(
    tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(job: Any) -> None:
        (job.private / "test.csv").touch()

    monkeypatch.setattr(preparing, "load_task", lambda competition: SimpleNamespace(prepare=prepare))
    with pytest.raises(
        DataProblem, match=r"public/sample_submission\.csv was not prepared: .*as files\.sample_submission"
    ):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    assert not (tmp_path / "data" / ID / "prepared").exists()


@pytest.mark.parametrize("place", ["x.zip", f"{ID}.zip", f"{ID}/{ID}.zip", f"{ID}/other.zip"])
def test_raw_data_may_be_given_as_a_zip_or_a_folder_with_one(tmp_path: Path, raw: Path, place: str) -> None:
    path = tmp_path / "given" / place
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for file in raw.iterdir():
            archive.write(file, file.name)
    before = path.read_bytes()
    given = path if place == "x.zip" else tmp_path / "given"
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=given)
    assert tree(prepared / "private") == tree(
        prepare_competition(ID, data_dir=tmp_path / "other", raw=raw) / "private"
    )
    assert path.read_bytes() == before
    with pytest.raises(DataProblem, match="were not found"):
        prepare_competition(ID, data_dir=tmp_path / "data", raw=tmp_path / "nowhere")
