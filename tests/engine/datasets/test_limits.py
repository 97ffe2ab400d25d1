"""Datasets share disk and bandwidth: each takes only what the others and the operator leave."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.console.cli.status import datasets_text
from mlebench_console.console.views.datasets import dataset_board, totals
from mlebench_console.engine.datasets import limits, queue
from mlebench_console.engine.datasets.limits import Limits, SharedRate
from mlebench_console.engine.datasets.plans import Plan, request
from mlebench_console.engine.datasets.queue import Capacity, DatasetQueue
from mlebench_console.engine.datasets.steps import CHECKSUM, DOWNLOAD, EXTRACT, PREPARE
from mlebench_console.engine.space import DiskFull
from mlebench_console.foundation.workers import Progressed
from mlebench_console.state import datasets
from mlebench_console.state.database import Database, open_for_writing
from mlebench_console.state.records import Dataset, DatasetState, PreparationOptions
from tests.clocks import HandClock
from tests.engine.datasets.test_outages import Jobs

ONE, TWO, THREE = "leaf-classification", "spaceship-titanic", "spooky-author-identification"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "state").mkdir()
    opened = open_for_writing(tmp_path / "state")
    yield opened
    opened.close()


class World:
    """A queue whose jobs are not done, with what the disk has free."""

    def __init__(self, database: Database, tmp_path: Path, kept: Limits, *, jobs: int = 3) -> None:
        self.database = database
        self.jobs = Jobs()
        self.clock = HandClock()
        capacity = Capacity(downloads=jobs, preparations=jobs, limits=kept)
        self.queue = DatasetQueue(
            database, self.jobs, self.clock, data_dir=tmp_path / "data", capacity=capacity, patience=60.0
        )
        self.queue.recover()

    def offered(self, name: str, size: int) -> None:
        """Request a dataset that Kaggle offers, of so many bytes."""
        request(self.database, Plan(name, "v1", PreparationOptions(), download=True), now=self.clock.now())
        self.queue.records.offered(self.dataset(name), size)

    def dataset(self, name: str) -> Dataset:
        found = datasets.find(self.database, name, "v1")
        assert found is not None
        return found

    def going(self) -> list[str]:
        self.queue.step()
        return [name for _, name in self.jobs.going.values()]


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the disk has free."""
    amount = [1000]
    for module in (limits, queue):
        monkeypatch.setattr(module, "free_bytes", lambda _: amount[0])
    return amount


def test_downloads_reserve_room_from_each_other(database: Database, tmp_path: Path, free: list[int]) -> None:
    world = World(database, tmp_path, Limits(keep_free=200))
    world.offered(ONE, 300)
    world.offered(TWO, 400)
    world.offered(THREE, 450)
    assert world.going() == [ONE, TWO]  # 700 of the 800 that may be used
    waiting = world.dataset(THREE)
    assert waiting.state is DatasetState.WAITING and waiting.problem_text.startswith(
        "waits for disk space: it needs 0.0 MB"
    )
    world.queue.take_event(Progressed(1, DOWNLOAD, "", 290, 300))
    free[0] -= 290
    assert world.going() == [ONE, TWO]  # 510 may be used, 410 are reserved
    world.queue.take_event(Progressed(2, DOWNLOAD, "", 395, 400))
    assert world.going() == [ONE, TWO, THREE]
    assert world.dataset(THREE).problem_text == ""


def test_the_rate_of_all_downloads_together_is_measured_and_the_rest_summed_up(
    database: Database, tmp_path: Path, free: list[int]
) -> None:
    world = World(database, tmp_path, Limits())
    world.offered(ONE, 300)
    world.offered(TWO, 600)
    world.going()
    assert world.queue.download_rate is None
    for number, done in ((1, 100), (2, 0), (1, 200), (2, 300)):  # the first report is of what was there
        world.queue.take_event(Progressed(number, DOWNLOAD, "", done, 300 * number))
        world.clock.moment += 2.5
    assert world.queue.download_rate == pytest.approx(400 / 5)
    world.queue.step()
    board = dataset_board(database, tmp_path)
    found = totals(board, free=1000, download_rate=world.queue.download_rate)
    assert (found.busy, found.downloaded, found.to_download) == (2, 500, 400)
    assert datasets_text(replace(found, eta=5.0)) == "2 datasets, 500 B of 900 B downloaded, 80 B/s, 5s left"
    world.clock.moment += 60
    assert world.queue.download_rate is None


def test_one_that_never_fits_tries_alone_and_says_what_it_needs(
    database: Database, tmp_path: Path, free: list[int]
) -> None:
    world = World(database, tmp_path, Limits(keep_free=200))
    world.offered(ONE, 5000)
    assert world.going() == [ONE]


def test_what_is_to_stay_free_stays_free_in_every_step_that_writes(tmp_path: Path, free: list[int]) -> None:
    report = Limits(keep_free=200).keeping(lambda *_: None, tmp_path)
    for step in (DOWNLOAD, EXTRACT, PREPARE, CHECKSUM):
        report(step, "", 1, 10)
    free[0] = 199
    for step in (DOWNLOAD, EXTRACT, PREPARE):
        with pytest.raises(DiskFull, match="must stay free"):
            report(step, "", 2, 10)
    report(CHECKSUM, "", 2, 10)


def test_all_downloads_together_keep_to_one_rate(tmp_path: Path) -> None:
    now = [50.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    rates = [SharedRate(tmp_path / "rate", 100.0, now=lambda: now[0], sleep=sleep) for _ in range(3)]
    for _ in range(4):
        for rate in rates:
            rate.take(50)
    assert now[0] == pytest.approx(56.0)
    SharedRate(tmp_path / "rate", 100.0, now=lambda: -9000.0, sleep=lambda seconds: now.append(seconds)).take(
        50
    )
    assert now[-1] == pytest.approx(0.5)  # what was booked before the machine started again does not count


def test_only_what_is_loaded_counts_towards_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(SharedRate, "take", lambda _, count: taken.append(count))
    report = Limits(rate=1e6, rate_file=str(tmp_path / "rate")).keeping(lambda *_: None, tmp_path)
    for step, done in ((DOWNLOAD, 700), (DOWNLOAD, 750), (DOWNLOAD, 20), (DOWNLOAD, 30), (EXTRACT, 500)):
        report(step, "", done, 1000)
    assert taken == [50, 10]


def test_the_higher_priority_comes_first(database: Database, tmp_path: Path, free: list[int]) -> None:
    world = World(database, tmp_path, Limits(), jobs=1)
    for name, size in ((ONE, 10), (TWO, 500)):
        world.offered(name, size)
    with database.transaction():
        datasets.set_priority(database, TWO, "v1", 5)
    assert world.going() == [TWO]


def test_a_dataset_that_nobody_may_read_stops_only_itself(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: list[int]
) -> None:
    is_dir = Path.is_dir

    def refuse(path: Path) -> bool:
        if ONE in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refuse)
    (tmp_path / "data" / ONE).mkdir(parents=True)
    world = World(database, tmp_path, Limits())
    assert world.dataset(ONE).state is DatasetState.FAILED
    assert "leaf-classification can't be read: Permission denied" in world.dataset(ONE).problem_text
    for name in (ONE, TWO):
        request(database, Plan(name, "v1", PreparationOptions(), download=True), now=1.0)
    assert world.going() == [TWO]
    assert world.dataset(ONE).state is DatasetState.FAILED
