"""A zip that is discarded while it is extracted is never taken for another one, wherever a kill came."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Checksums
from mlebench_console.engine.claims import claimed
from mlebench_console.engine.datasets import preparing
from mlebench_console.engine.datasets.plans import Options, Plan, request
from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.datasets.preparing import prepare
from mlebench_console.engine.datasets.sources import discarding, raw_data
from mlebench_console.engine.datasets.steps import no_report
from mlebench_console.engine.datasets.tasks import settle_dataset
from mlebench_console.engine.layout import DatasetFolder, dataset_folder, is_prepared
from mlebench_console.foundation.problems import DataProblem, Problem
from mlebench_console.foundation.workers import Ended
from mlebench_console.state import events
from mlebench_console.state.database import Database
from tests.conformance.trees import VECTORS, Vector, describe
from tests.engine.datasets.test_outages import World

ID = "dog-breed-identification"  # of images, which are linked to what was extracted
DISCARDING = Options(verify=False, discard_zip=True)


class Killed(BaseException):
    """Stands for a kill: nothing after it is done."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    base = tmp_path_factory.mktemp("raw")
    raw = Vector(VECTORS / ID).unpack_raw(base / "raw")
    with zipfile.ZipFile(base / "x.zip", "w") as made:
        for path in sorted(raw.rglob("*")):
            made.write(path, path.relative_to(raw))
    return (base / "x.zip").read_bytes()


@pytest.fixture
def folder(tmp_path: Path, archive: bytes) -> DatasetFolder:
    found = dataset_folder(registry.get(ID), tmp_path)
    found.root.mkdir()
    (found.root / f"{ID}.zip").write_bytes(archive)
    return found


def killed_at(monkeypatch: pytest.MonkeyPatch, place: object, name: str, folder: DatasetFolder) -> None:
    """Begin to prepare, and kill it when it calls a function."""

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(place, name, kill)
        prepare(ID, data_dir=folder.root.parent, options=DISCARDING)


def names(folder: DatasetFolder) -> set[str]:
    return {path.name for path in folder.root.iterdir()}


def exact(prepared: Path) -> bool:
    expected = Vector(VECTORS / ID).expected
    return describe(prepared, expected) == {side: expected[side] for side in ("public", "private")}


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (raw_data, "sync_directory"),  # extracted and renamed, the zip is still there
        (checksums, "forget_zip"),  # the zip is gone, its record and marker are not
        (preparing, "_run"),
        (preparing, "put_in_place"),
        (preparing, "_clean_up"),
    ],
)
def test_a_kill_leaves_nothing_that_the_next_preparation_does_not_settle(
    folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    killed_at(monkeypatch, place, name, folder)
    assert exact(prepare(ID, data_dir=folder.root.parent, options=DISCARDING))
    assert names(folder) == {"prepared"}


def test_a_wrong_zip_after_a_kill_is_verified_as_any_other_and_stays(
    folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch, archive: bytes
) -> None:
    killed_at(monkeypatch, checksums, "forget_zip", folder)
    wrong = folder.root / f"{ID}.zip"
    wrong.write_bytes(archive + b"another one")
    known = Checksums(hashlib.md5(archive).hexdigest(), {}, {})
    competition = dataclasses.replace(registry.get(ID), checksums=known)
    monkeypatch.setattr(preparing, "get", lambda competition_id: competition)
    with pytest.raises(DataProblem, match="does not match the known checksum"):
        prepare(ID, data_dir=folder.root.parent, options=Options(verify=True, discard_zip=True))
    assert wrong.read_bytes() == archive + b"another one"
    wrong.write_bytes(archive)
    assert exact(prepare(ID, data_dir=folder.root.parent, options=Options(verify=True, discard_zip=True)))
    assert names(folder) == {"prepared"}


def test_what_was_extracted_of_an_older_zip_gives_way_to_one_that_is_whole(
    folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch, archive: bytes
) -> None:
    killed_at(monkeypatch, preparing, "_run", folder)
    table = next(folder.whole_raw.glob("*.csv"))
    table.write_text("stale\n")
    (folder.root / f"{ID}.zip").write_bytes(archive + b" ")
    assert exact(prepare(ID, data_dir=folder.root.parent, options=DISCARDING))
    assert names(folder) == {"prepared"}


def hollow(folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zip some of whose members have been extracted and freed."""
    punch = raw_data._punch

    def once(path: Path, members: object) -> None:
        punch(path, members)  # type: ignore[arg-type]
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(raw_data, "_punch", once)
        patched.setattr(raw_data, "_BATCH_FILES", 1)
        prepare(ID, data_dir=folder.root.parent, options=DISCARDING)
    path = folder.root / f"{ID}.zip"
    assert discarding.is_hollow(path) and discarding.marked(folder) is not None
    return path


def without_marker(folder: DatasetFolder) -> None:
    folder.consuming.unlink()


def with_an_older_versions(folder: DatasetFolder) -> None:
    folder.consuming.write_text(json.dumps({"zip": f"{ID}.zip"}))


@pytest.mark.parametrize("change", [None, without_marker, with_an_older_versions])
def test_a_half_freed_zip_goes_on_where_its_other_half_was_extracted(
    folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch, change: Callable[[DatasetFolder], None] | None
) -> None:
    hollow(folder, monkeypatch)
    if change is not None:
        change(folder)
    assert exact(prepare(ID, data_dir=folder.root.parent, options=Options(verify=False)))
    assert names(folder) == {"prepared"}


def test_a_freed_zip_whose_content_is_nowhere_is_removed_to_be_downloaded_again(
    folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    hollow(folder, monkeypatch)
    without_marker(folder)
    next(path for path in folder.partial_raw.rglob("*") if path.is_file()).unlink()
    with pytest.raises(Problem, match="credentials"):  # which Kaggle is asked with for another one
        prepare(ID, data_dir=folder.root.parent, options=Options(verify=False))
    assert names(folder) == set()
    assert not is_prepared(registry.get(ID), folder)


def test_leftovers_of_claims_and_of_zips_that_are_gone_are_removed(folder: DatasetFolder) -> None:
    (folder.root / f"{ID}.zip").unlink()
    (folder.root / f".{ID}.zip.md5.json").write_text("{}")
    (folder.root / ".trash.0123").mkdir()
    old, new = folder.root / ".claim.old", folder.root / ".claim.new"
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - 3600,) * 2)
    with claimed(folder.claim, ID):
        discarding.settle(folder)
    assert names(folder) == {".claim.new"}


def test_an_engine_that_starts_has_settled_what_killed_preparations_left(
    folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch, state: Database
) -> None:
    killed_at(monkeypatch, checksums, "forget_zip", folder)
    (folder.root / ".trash.0123").mkdir()
    # Of a preparation that was killed while it put a tree in the place of another.
    (folder.root / ".prepared.abc.partial" / "replaced").mkdir(parents=True)
    (folder.root / ".prepared.abc.partial" / "prepared" / "public").mkdir(parents=True)
    queued, foreign = (folder.root.parent / name for name in ("leaf-classification", "of another program"))
    for other in (queued, foreign):
        (other / ".trash.4567").mkdir(parents=True)
    request(state, Plan(queued.name, "v1", Options(), download=True), now=1.0)
    world = World(state, folder.root.parent, lambda _task, _at: None)
    assert list(world.jobs.going.values()) == [("settle_dataset", ID)]
    settle_dataset(ID, str(folder.root.parent), report_progress=no_report)
    assert names(folder) == {".raw", ".consuming.json", "prepared"}
    assert (folder.prepared / "public").is_dir()
    assert (queued / ".trash.4567").is_dir() and (foreign / ".trash.4567").is_dir()


def test_what_another_process_works_on_is_left_to_it(folder: DatasetFolder) -> None:
    (folder.root / ".trash.0123").mkdir()
    with claimed(folder.claim, ID):
        assert settle_dataset(ID, str(folder.root.parent), report_progress=no_report) == {}
        assert (folder.root / ".trash.0123").is_dir()
    settle_dataset(ID, str(folder.root.parent), report_progress=no_report)
    assert names(folder) == {f"{ID}.zip"}


def test_leftovers_that_can_not_be_settled_are_told(folder: DatasetFolder, state: Database) -> None:
    (folder.root / ".trash.0123").mkdir()
    world = World(state, folder.root.parent, lambda _task, _at: None)
    (number,) = world.jobs.going
    world.queue.take_event(Ended(number, problem=DataProblem("it can't be removed", "no rights")))
    (event,) = events.newest(state, competition_id=ID)
    assert event.kind == "dataset.leftover"
    assert "left over from a killed preparation: it can't be removed: no rights" in event.text
