"""The queue of requested datasets: what worker processes check, download, prepare, verify and prune, and when.

One dataset that fails stops no other. Downloads and preparations are limited apart from each other: one needs the
network, the other processors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from competitions import registry
from competitions.model import EDITIONS, edition_named
from engine.claims import Claimed
from engine.datasets.access import CHECK_ACCESS, state_after
from engine.datasets.plans import (
    BUSY,
    by_priority,
    is_ready,
    next_stage,
    record_prepared,
)
from engine.datasets.records import DatasetRecords
from engine.datasets.steps import CHECK, CHECKSUM, DOWNLOAD, PREPARE
from engine.space import DiskFull, free_bytes
from foundation.clock import Clock
from foundation.workers import Ended, Progressed, WorkerPool
from state import datasets
from state.database import Database
from state.records import Dataset, DatasetState, StepState, VerificationKind

_TASKS = "engine.datasets.tasks"
FETCH = f"{_TASKS}:fetch_zip"
PREPARE_DATASET, VERIFY = f"{_TASKS}:prepare_dataset", f"{_TASKS}:verify_dataset"
PRUNE = f"{_TASKS}:prune_dataset"
PRELOAD = ("pandas", _TASKS)

_RESTARTS = 3
_CHECKS_AT_ONCE = 4
_PROGRESS_SECONDS = 0.5
_CLAIMED_SECONDS = 10.0
_MORE_SPACE_BYTES = 1 << 20

Key = tuple[str, str]


@dataclass(frozen=True)
class Capacity:
    """How much may be done at once, and how much of the disk is to stay free."""

    downloads: int
    preparations: int
    keep_free: int = 0


@dataclass
class _Work:
    dataset: Dataset
    stage: str
    free_before: int
    shared_disk: bool
    step: str = ""
    reported_at: float = 0.0
    unreported: Progressed | None = None
    cancelled: bool = False


class DatasetQueue:
    """Starts datasets as there is room for them, and keeps their steps in the state."""

    def __init__(
        self, database: Database, pool: WorkerPool, clock: Clock, *, data_dir: Path, capacity: Capacity
    ) -> None:
        self._database = database
        self._pool = pool
        self._clock = clock
        self._data_dir = data_dir
        self._capacity = capacity
        self.records = DatasetRecords(database, clock)
        self.verifications = Verifications(database, pool, self.records, clock, data_dir=data_dir)
        self._working: dict[int, _Work] = {}
        self._pruning: dict[int, str] = {}
        self._restarts: dict[Key, int] = {}
        self._blocked: dict[Key, Callable[[], bool]] = {}

    @property
    def working(self) -> int:
        """Count the datasets that are being worked on."""
        return len(self._working) + self.verifications.working

    def recover(self) -> None:
        """Queue again what an earlier engine was working on."""
        for dataset in datasets.in_state(self._database, DatasetState.WORKING):
            self.records.put_back(dataset)
        self.refresh()
        self.verifications.recover()

    def step(self) -> None:
        """Start what there is capacity for, and record progress that came too soon after other progress."""
        for work in self._working.values():
            if work.unreported is not None:
                self._take_progress(work, work.unreported)
        self.verifications.step(self._capacity.preparations)
        free = {
            CHECK: _CHECKS_AT_ONCE - self._in_stage(CHECK),
            DOWNLOAD: self._capacity.downloads - self._in_stage(DOWNLOAD),
            PREPARE: self._capacity.preparations - self._in_stage(PREPARE),
        }
        if max(free.values()) <= 0:
            return
        if self._in_stage(CHECK):
            # whoever has to accept rules learns of all of them before the hours begin
            free[DOWNLOAD] = 0
        waiting = datasets.in_state(self._database, DatasetState.WAITING)
        for dataset in by_priority(self._database, waiting):
            key = _key(dataset)
            if (key in self._blocked and self._blocked[key]()) or self._others_did_it(dataset):
                continue
            stage = next_stage(self._database, dataset, self._data_dir)
            if stage is CHECK:
                free[DOWNLOAD] = 0
            if free[stage] > 0 and not self._is_busy(dataset.competition_id):
                free[stage] -= 1
                self._blocked.pop(key, None)
                self._start(dataset, stage)

    def set_jobs(self, count: int) -> None:
        """Change how much is done at once, until the engine ends."""
        self._capacity = replace(self._capacity, downloads=count, preparations=count)

    def forget(self, competition_id: str, edition: str) -> None:
        """Forget why a dataset waited, because it was requested again."""
        self._blocked.pop((competition_id, edition), None)
        self._restarts.pop((competition_id, edition), None)

    def stop(self, dataset: Dataset) -> None:
        """Stop working on a dataset, or take it out of the queue; what is downloaded stays."""
        for number, work in self._working.items():
            if _key(work.dataset) == _key(dataset):
                work.cancelled = True
                self._pool.cancel(number)
                return
        if self.verifications.knows(dataset):
            self.verifications.stop(dataset)
        else:
            self.records.stopped(dataset)

    def prune(self, competition_id: str, parts: tuple[str, ...]) -> None:
        """Remove parts of a competition's data from the disk."""
        wanted = {"competition_id": competition_id, "data_dir": str(self._data_dir), "parts": parts}
        self._pruning[self._pool.start(PRUNE, wanted)] = competition_id

    def refresh(self) -> None:
        """Record which datasets are prepared on the disk, by whatever program, and which are gone."""
        known = {(one.competition_id, one.edition): one for one in datasets.all_datasets(self._database)}
        for dataset in known.values():
            if dataset.state is DatasetState.PREPARED and not self._is_ready(dataset):
                self.records.gone(dataset)
        for competition_id in registry.all_ids():
            for edition in EDITIONS:
                found = known.get((competition_id, edition))
                busy = found is not None and found.state in BUSY
                if not busy and is_ready(competition_id, edition, self._data_dir):
                    record_prepared(self._database, competition_id, edition, now=self._clock.now())

    def take_news(self, news: Progressed | Ended) -> bool:
        """Take news of a job; False when it is not one of these. What the state could not take is not forgotten."""
        if news.number in self._pruning:
            if isinstance(news, Ended):
                competition_id = self._pruning[news.number]
                if news.problem is not None:
                    self.records.not_pruned(competition_id, news.problem)
                else:
                    self.records.pruned(competition_id, int(news.value["bytes"]))
                del self._pruning[news.number]
                self.refresh()
            return True
        if self.verifications.take_news(news):
            return True
        work = self._working.get(news.number)
        if work is None:
            return False
        if isinstance(news, Progressed):
            self._take_progress(work, news)
        else:
            self._take_end(work, news)
            del self._working[news.number]
        return True

    def _in_stage(self, stage: str) -> int:
        return sum(work.stage is stage for work in self._working.values())

    def _is_busy(self, competition_id: str) -> bool:
        """Whether another edition of it is being worked on: they share the raw data."""
        return any(work.dataset.competition_id == competition_id for work in self._working.values())

    def _is_ready(self, dataset: Dataset) -> bool:
        return is_ready(dataset.competition_id, edition_named(dataset.edition), self._data_dir)

    def _others_did_it(self, dataset: Dataset) -> bool:
        """Whether another user of the data directory has prepared it while we waited for their claim."""
        key = _key(dataset)
        if key not in self._blocked or not self._is_ready(dataset):
            return False
        del self._blocked[key]
        self.records.prepared(dataset, None)
        return True

    def _start(self, dataset: Dataset, stage: str) -> None:
        self.records.working(dataset)
        task = CHECK_ACCESS
        wanted: dict[str, object] = {"competition_id": dataset.competition_id}
        if stage is not CHECK:
            task = FETCH
            wanted |= {"data_dir": str(self._data_dir), "keep_free": self._capacity.keep_free}
        if stage is PREPARE:
            task = PREPARE_DATASET
            wanted |= {"edition": edition_named(dataset.edition), "options": dataset.source}
        for work in self._working.values():
            work.shared_disk = True
        work = _Work(dataset, stage, free_bytes(self._data_dir), shared_disk=bool(self._working))
        self._working[self._pool.start(task, wanted)] = work

    def _take_progress(self, work: _Work, news: Progressed) -> None:
        now = self._clock.monotonic()
        if news.step == work.step and now - work.reported_at < _PROGRESS_SECONDS:
            work.unreported = news  # the screen can't show more, and every change is a disk write
            return
        work.unreported = None
        self.records.progress(work.dataset, work.step, news)
        work.step = news.step
        work.reported_at = now

    def _take_end(self, work: _Work, news: Ended) -> None:
        dataset = work.dataset
        key = _key(dataset)
        if work.cancelled:
            self.records.stopped(dataset)
        elif news.lost and self._restarts.get(key, 0) < _RESTARTS:
            self.records.put_back(dataset)
            self._restarts[key] = self._restarts.get(key, 0) + 1
        elif news.kind in (DiskFull.__name__, Claimed.__name__):
            self._wait(work, news)
        elif news.value is None:
            self.records.failed(dataset, work.step or work.stage, news, state_after(news.kind))
        elif work.stage is CHECK:
            self.records.offered(dataset, news.value["bytes"])
        elif work.stage is DOWNLOAD:
            self.records.fetched(dataset)
        else:
            self.records.prepared(dataset, int(news.value["bytes_on_disk"]))

    def _wait(self, work: _Work, news: Ended) -> None:
        """Keep a dataset in the queue until what stopped it may have passed."""
        dataset = work.dataset
        assert news.problem is not None
        self.records.put_back(dataset, news.problem.in_one_line())
        if news.kind == Claimed.__name__:
            not_before = self._clock.monotonic() + _CLAIMED_SECONDS
            self._blocked[_key(dataset)] = lambda: self._clock.monotonic() < not_before
            return
        # What a preparation wrote is gone again; a download stays and is resumed.
        before = free_bytes(self._data_dir) if work.stage is DOWNLOAD else work.free_before
        shared_disk = work.shared_disk

        def too_full() -> bool:
            if shared_disk and not self._working:
                return False  # it may fit when nothing else takes space at the same time
            return free_bytes(self._data_dir) < before + _MORE_SPACE_BYTES

        self._blocked[_key(dataset)] = too_full


class Verifications:
    """Datasets that wait to be verified, in the order of the requests, and those being verified."""

    def __init__(
        self, database: Database, pool: WorkerPool, records: DatasetRecords, clock: Clock, *, data_dir: Path
    ) -> None:
        self._database = database
        self._pool = pool
        self._records = records
        self._clock = clock
        self._data_dir = data_dir
        self._waiting: deque[Dataset] = deque()
        self._working: dict[int, Dataset] = {}
        self._stopped: set[int] = set()
        self._reported_at = float("-inf")

    @property
    def working(self) -> int:
        """Count the datasets that are being verified."""
        return len(self._working)

    def recover(self) -> None:
        """Queue again what an earlier engine was asked to verify."""
        open_ = {
            (step.competition_id, step.edition)
            for step in datasets.all_steps(self._database)
            if step.name == CHECKSUM and step.state in (StepState.WAITING, StepState.WORKING)
        }
        prepared = datasets.in_state(self._database, DatasetState.PREPARED)
        self._waiting.extend(each for each in prepared if _key(each) in open_)

    def ask(self, dataset: Dataset, kind: VerificationKind) -> None:
        """Verify a dataset when there is room, unless that is so already."""
        if not self.knows(dataset):
            self._waiting.append(replace(dataset, verification=kind))
            self._records.to_verify(dataset, kind)

    def knows(self, dataset: Dataset) -> bool:
        """Whether a dataset is being verified or waits for it."""
        return any(_key(each) == _key(dataset) for each in (*self._waiting, *self._working.values()))

    def step(self, capacity: int) -> None:
        """Start as many as there is room for."""
        while self._waiting and len(self._working) < capacity:
            dataset = self._waiting.popleft()
            wanted = {
                "competition_id": dataset.competition_id,
                "data_dir": str(self._data_dir),
                "edition": edition_named(dataset.edition),
                "kind": dataset.verification,
            }
            self._working[self._pool.start(VERIFY, wanted)] = dataset

    def stop(self, dataset: Dataset) -> None:
        """Verify a dataset no longer."""
        for each in [each for each in self._waiting if _key(each) == _key(dataset)]:
            self._waiting.remove(each)
            self._records.not_verified(each)
        for number, each in self._working.items():
            if _key(each) == _key(dataset):
                self._stopped.add(number)
                self._pool.cancel(number)

    def take_news(self, news: Progressed | Ended) -> bool:
        """Take news of a job; False when it is not one of these."""
        dataset = self._working.get(news.number)
        if dataset is None:
            return False
        if isinstance(news, Progressed):
            now = self._clock.monotonic()
            if now - self._reported_at >= _PROGRESS_SECONDS:  # the screen can't show more
                self._reported_at = now
                self._records.verifying(dataset, news)
            return True
        if news.number in self._stopped:
            self._records.not_verified(dataset)
            self._stopped.remove(news.number)
        elif news.lost:
            self._waiting.appendleft(dataset)
        else:
            self._records.verified(dataset, news)
        del self._working[news.number]
        return True


def _key(dataset: Dataset) -> tuple[str, str]:
    return dataset.competition_id, dataset.edition
