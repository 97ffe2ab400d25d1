"""What killed preparations left is cleaned up by the next one, or when an engine starts."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.engine.claims import claimed
from mlebench_console.engine.datasets.plans import Plan, request
from mlebench_console.engine.datasets.prepared.workspace import resolve_leftovers
from mlebench_console.engine.datasets.steps import no_report
from mlebench_console.engine.datasets.tasks import settle_dataset
from mlebench_console.engine.layout import DatasetFolder, dataset_folder
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.workers import Ended
from mlebench_console.state import events
from mlebench_console.state.database import Database
from mlebench_console.state.records import PreparationOptions
from tests.engine.datasets.test_outages import World

ID = "dog-breed-identification"


@pytest.fixture
def folder(tmp_path: Path) -> DatasetFolder:
    found = dataset_folder(registry.get(ID), tmp_path)
    found.root.mkdir()
    (found.root / f"{ID}.zip").touch()
    return found


def names(folder: DatasetFolder) -> set[str]:
    return {path.name for path in folder.root.iterdir()}


def test_leftovers_of_claims_and_of_zips_that_are_gone_are_removed(folder: DatasetFolder) -> None:
    (folder.root / f"{ID}.zip").unlink()
    (folder.root / f".{ID}.zip.md5.json").write_text("{}")
    (folder.root / ".trash.0123").mkdir()
    old, new = folder.root / ".claim.old", folder.root / ".claim.new"
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - 3600,) * 2)
    with claimed(folder.claim, ID):
        resolve_leftovers(folder)
    assert names(folder) == {".claim.new"}


def test_an_engine_that_starts_has_settled_what_killed_preparations_left(
    folder: DatasetFolder, state: Database
) -> None:
    (folder.root / ".trash.0123").mkdir()
    # Of a preparation that was killed while it put a tree in the place of another.
    (folder.root / ".prepared.abc.partial" / "replaced").mkdir(parents=True)
    (folder.root / ".prepared.abc.partial" / "prepared" / "public").mkdir(parents=True)
    queued, foreign = (folder.root.parent / name for name in ("leaf-classification", "of another program"))
    for other in (queued, foreign):
        (other / ".trash.4567").mkdir(parents=True)
    request(state, Plan(queued.name, "v1", PreparationOptions(), download=True), now=1.0)
    world = World(state, folder.root.parent, lambda _task, _at: None)
    assert list(world.jobs.going.values()) == [("settle_dataset", ID)]
    settle_dataset(ID, str(folder.root.parent), report_progress=no_report)
    assert names(folder) == {f"{ID}.zip", "prepared"}
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
