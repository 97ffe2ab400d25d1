"""Which dataset comes first, how fast they go, and which are found that others prepared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.engine.datasets.estimates import (
    Throughput,
    known_sizes,
    measured,
    usual_peak,
)
from mlebench_console.engine.datasets.plans import by_priority
from mlebench_console.engine.datasets.queue import Capacity, DatasetQueue
from mlebench_console.engine.datasets.records import DatasetRecords
from mlebench_console.engine.datasets.steps import (
    CHECK,
    CHECKSUM,
    DOWNLOAD,
    PREPARE,
    STEPS,
)
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.workers import WorkerPool
from mlebench_console.state import datasets
from mlebench_console.state.database import Database, open_for_writing
from mlebench_console.state.datasets import Progress
from mlebench_console.state.records import DatasetState, PreparationOptions, StepState
from tests.conditions import spec_of
from tests.engine.states import new_sweep

SMALL, MIDDLE, LARGE, UNKNOWN = (
    "spooky-author-identification",
    "dog-breed-identification",
    "siim-isic-melanoma-classification",
    "statoil-iceberg-classifier-challenge",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "state").mkdir()
    opened = open_for_writing(tmp_path / "state")
    yield opened
    opened.close()


def request(database: Database, *names: str) -> None:
    for moment, name in enumerate(names):
        datasets.request(database, name, "v1", steps=STEPS, options=PreparationOptions(), now=float(moment))


def order(database: Database) -> list[str]:
    waiting = datasets.in_state(database, DatasetState.WAITING)
    return [dataset.competition_id for dataset in by_priority(database, waiting)]


def test_small_datasets_come_first_by_what_kaggle_told_or_else_the_facts(database: Database) -> None:
    request(database, LARGE, UNKNOWN, MIDDLE, SMALL)
    assert order(database) == [SMALL, MIDDLE, LARGE, UNKNOWN]
    told = Progress(StepState.WAITING, 0, 1_000, "bytes")
    datasets.set_step(database, UNKNOWN, "v1", DOWNLOAD, told, now=9)
    assert order(database) == [UNKNOWN, SMALL, MIDDLE, LARGE]


def test_what_runs_wait_for_comes_before_what_is_small(database: Database) -> None:
    request(database, LARGE, SMALL)
    spec = spec_of("dummy", "/agents", (LARGE,), seeds=1, time_limit_seconds=60)
    new_sweep(database, spec)
    assert order(database) == [LARGE, SMALL]


def take(database: Database, name: str, step: str, size: int, start: float, end: float) -> None:
    unit = "bytes" if size else ""
    datasets.set_step(
        database, name, "v1", step, Progress(StepState.WORKING, 0, size or None, unit), now=start
    )
    done = Progress(StepState.DONE, size, size or None, unit)
    datasets.set_step(database, name, "v1", step, done, now=end)


def throughput(database: Database, *names: str) -> Throughput:
    return measured(datasets.steps(database, name, "v1") for name in names)


def test_rates_are_measured_over_the_time_in_which_something_went_on(database: Database) -> None:
    request(database, SMALL, MIDDLE)
    assert throughput(database, SMALL, MIDDLE) == Throughput(None, None)
    # Side by side from 0 to 20 and from 10 to 30, then nothing until 100: 180 MB in 30 seconds.
    take(database, SMALL, DOWNLOAD, 60_000_000, 0, 20)
    take(database, MIDDLE, DOWNLOAD, 120_000_000, 10, 30)
    for step in STEPS[2:]:
        take(database, SMALL, step, 0, 100, 105)
    found = throughput(database, SMALL, MIDDLE)
    assert found == Throughput(download=6e6, prepare=12e6)
    assert found.seconds(to_download=300_000_000, to_prepare=300_000_000) == 50.0
    assert found.seconds(to_download=0, to_prepare=300_000_000) == 25.0
    assert Throughput(2.0, None).seconds(to_download=100, to_prepare=100) is None


def test_small_datasets_say_nothing_of_how_long_large_ones_take(database: Database) -> None:
    request(database, SMALL)
    take(database, SMALL, DOWNLOAD, 20_000, 0, 2)
    for step in STEPS[2:]:
        take(database, SMALL, step, 0, 2, 5)
    assert throughput(database, SMALL) == Throughput(None, None)


def test_the_sizes_of_the_benchmark_and_of_lite_are_known_without_asking_anybody() -> None:
    whole, lite = ([registry.get(name) for name in registry.splits()[split]] for split in ("split75", "low"))
    assert known_sizes(whole) == (3_300_000_000_000, 0)
    size, unknown = known_sizes(lite)
    assert unknown == 0 and 400e9 < usual_peak(size) < 420e9
    some = [one for one in whole if one.size_gb is None][:3]
    assert known_sizes([*lite[:1], *some]) == (int((lite[0].size_gb or 0) * 1e9), 3)


def test_when_a_step_was_done_stays_known_when_all_are(database: Database, tmp_path: Path) -> None:
    request(database, SMALL)
    for step in (CHECK, DOWNLOAD, PREPARE):
        take(database, SMALL, step, 0, 1, 2)
    found = datasets.find(database, SMALL, "v1")
    assert found is not None
    DatasetRecords(database, SystemClock()).prepared(found, 5, demo=False)
    ended = {step.name: step.ended_at for step in datasets.steps(database, SMALL, "v1")}
    assert (ended[CHECK], ended[DOWNLOAD], ended[PREPARE]) == (2, 2, 2)
    assert (ended[CHECKSUM] or 0) > 2


def test_datasets_that_others_prepared_are_found_and_those_they_removed_are_missed(
    database: Database, tmp_path: Path
) -> None:
    competition = registry.get(SMALL)
    folder = dataset_folder(competition, tmp_path / "data")
    for name in (competition.answers, competition.sample_submission):
        path = folder.prepared / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id\n")
    pool = WorkerPool()
    queue = DatasetQueue(
        database, pool, SystemClock(), data_dir=tmp_path / "data", capacity=Capacity(1, 1), patience=60
    )
    queue.recover()
    found = datasets.find(database, SMALL, "v1")
    assert found is not None and found.state is DatasetState.PREPARED
    (folder.prepared / competition.answers).unlink()
    queue.refresh()
    found = datasets.find(database, SMALL, "v1")
    assert found is not None and found.state is DatasetState.ABSENT
