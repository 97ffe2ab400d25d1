"""Working through the requested datasets with the worker processes; one that fails stops nothing else.

Downloads and preparations wait in lanes of their own: one needs the network, the other processors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from competitions import registry
from competitions.model import EDITIONS, edition_named
from engine.claims import Claimed
from engine.datasets import tasks
from engine.datasets.access import state_after
from engine.datasets.noting import Notebook
from engine.datasets.planning import Lane, in_order, is_ready, next_lane, note_prepared
from engine.datasets.sources import CHECK, DOWNLOAD, PREPARE
from engine.datasets.verifications import Verifications
from engine.space import DiskFull, free_bytes
from foundation.clock import Clock
from foundation.workers import Ended, Progressed, WorkerPool
from state import datasets
from state.database import Database
from state.records import Dataset, DatasetState

_IN_HAND = (DatasetState.WAITING, DatasetState.WORKING)
_BLAMELESS_TRIES = 3
_CHECKS_AT_ONCE = 4
_PROGRESS_SECONDS = 0.5
_CLAIMED_SECONDS = 10.0
_MORE_SPACE_BYTES = 1 << 20

Key = tuple[str, str]


@dataclass(frozen=True)
class Room:
    """How much may be done at once, and how much of the disk is to stay free."""

    downloads: int
    preparations: int
    keep_free: int = 0


@dataclass
class _Work:
    dataset: Dataset
    lane: Lane
    free_before: int
    company: bool
    step: str = ""
    told_at: float = 0.0
    untold: Progressed | None = None
    cancelled: bool = False


class DatasetDesk:
    """Starts datasets as there is room for them, and keeps their steps in the state."""

    def __init__(
        self, database: Database, pool: WorkerPool, clock: Clock, *, data_dir: Path, room: Room
    ) -> None:
        self._database = database
        self._pool = pool
        self._clock = clock
        self._data_dir = data_dir
        self._room = room
        self._notes = Notebook(database, clock)
        self._verifications = Verifications(database, pool, self._notes, clock, data_dir=data_dir)
        self._working: dict[int, _Work] = {}
        self._pruning: dict[int, str] = {}
        self._blameless: dict[Key, int] = {}
        self._not_yet: dict[Key, Callable[[], bool]] = {}

    @property
    def working(self) -> int:
        """How many datasets are being worked on."""
        return len(self._working) + self._verifications.working

    def recover(self) -> None:
        """After a start: what an earlier engine was working on waits again."""
        for dataset in datasets.in_state(self._database, DatasetState.WORKING):
            self._notes.put_back(dataset)
        self.refresh()
        self._verifications.recover()

    def step(self) -> None:
        """Start what there is room for, and tell what came too soon after something else to be told then."""
        for work in self._working.values():
            if work.untold is not None:
                self._hear_progress(work, work.untold)
        self._verifications.step(self._room.preparations)
        free = {
            Lane.CHECK: _CHECKS_AT_ONCE - self._in_lane(Lane.CHECK),
            Lane.DOWNLOAD: self._room.downloads - self._in_lane(Lane.DOWNLOAD),
            Lane.PREPARE: self._room.preparations - self._in_lane(Lane.PREPARE),
        }
        if max(free.values()) <= 0:
            return
        if self._in_lane(Lane.CHECK):
            free[Lane.DOWNLOAD] = (
                0  # whoever has to accept rules learns of all of them before the hours begin
            )
        waiting = datasets.in_state(self._database, DatasetState.WAITING)
        for dataset in in_order(self._database, waiting):
            key = (dataset.competition_id, dataset.edition)
            if key in self._not_yet and self._not_yet[key]():
                continue
            if self._others_did_it(dataset):
                continue
            lane = next_lane(self._database, dataset, self._data_dir)
            if lane is Lane.CHECK:
                free[Lane.DOWNLOAD] = 0
            if free[lane] > 0 and not self._is_busy(dataset.competition_id):
                free[lane] -= 1
                self._not_yet.pop(key, None)
                self._start(dataset, lane)

    def set_jobs(self, count: int) -> None:
        """Change how much is done at once, until the engine ends."""
        self._room = replace(self._room, downloads=count, preparations=count)

    def forget(self, competition_id: str, edition: str) -> None:
        """Somebody asks for a dataset anew: nothing that happened before keeps it waiting."""
        self._not_yet.pop((competition_id, edition), None)
        self._blameless.pop((competition_id, edition), None)

    def stop(self, dataset: Dataset) -> None:
        """Stop working on a dataset, or take it out of the queue; what is downloaded stays."""
        for number, work in self._working.items():
            if work.dataset == dataset or self._is_of(work, dataset):
                work.cancelled = True
                self._pool.cancel(number)
                return
        if self._verifications.knows(dataset):
            self._verifications.stop(dataset)
        else:
            self._notes.stopped(dataset)

    def verify(self, dataset: Dataset) -> None:
        """Compare a prepared dataset with what is known of it."""
        self._verifications.ask(dataset)

    def is_verifying(self, dataset: Dataset) -> bool:
        """Whether a dataset is being verified or waits for it."""
        return self._verifications.knows(dataset)

    def prune(self, competition_id: str, parts: tuple[str, ...]) -> None:
        """Remove parts of a competition's data from the disk."""
        wanted = {"competition_id": competition_id, "data_dir": str(self._data_dir), "parts": parts}
        self._pruning[self._pool.start(tasks.PRUNE, wanted)] = competition_id

    def refresh(self) -> None:
        """Take into the state what lies prepared on the disk, by whomever, and what does no longer."""
        known = {(one.competition_id, one.edition): one for one in datasets.all_datasets(self._database)}
        for dataset in known.values():
            prepared = dataset.state is DatasetState.PREPARED
            if prepared and not is_ready(
                dataset.competition_id, edition_named(dataset.edition), self._data_dir
            ):
                self._notes.gone(dataset)
        for competition_id in registry.all_ids():
            for edition in EDITIONS:
                found = known.get((competition_id, edition))
                if found is not None and found.state in _IN_HAND:
                    continue
                if is_ready(competition_id, edition, self._data_dir):
                    note_prepared(self._database, competition_id, edition, now=self._clock.now())

    def hear(self, news: Progressed | Ended) -> bool:
        """Take news of a task; False when the task is not one of ours."""
        if news.number in self._pruning:
            if isinstance(news, Ended):
                self._notes.pruned(self._pruning.pop(news.number), news)
                self.refresh()
            return True
        if self._verifications.hear(news):
            return True
        work = self._working.get(news.number)
        if work is None:
            return False
        if isinstance(news, Progressed):
            self._hear_progress(work, news)
        else:
            del self._working[news.number]
            self._hear_end(work, news)
        return True

    def _in_lane(self, lane: Lane) -> int:
        return sum(work.lane is lane for work in self._working.values())

    def _is_busy(self, competition_id: str) -> bool:
        """Whether another edition of it is in hand: they share the raw data."""
        return any(work.dataset.competition_id == competition_id for work in self._working.values())

    @staticmethod
    def _is_of(work: _Work, dataset: Dataset) -> bool:
        return (work.dataset.competition_id, work.dataset.edition) == (
            dataset.competition_id,
            dataset.edition,
        )

    def _others_did_it(self, dataset: Dataset) -> bool:
        """Whether another user of the data directory has prepared it while we waited for their claim."""
        key = (dataset.competition_id, dataset.edition)
        if key not in self._not_yet:
            return False
        if not is_ready(dataset.competition_id, edition_named(dataset.edition), self._data_dir):
            return False
        del self._not_yet[key]
        self._notes.prepared(dataset, None)
        return True

    def _start(self, dataset: Dataset, lane: Lane) -> None:
        self._notes.working(dataset)
        task = tasks.CHECK_ACCESS
        wanted: dict[str, object] = {"competition_id": dataset.competition_id}
        if lane is not Lane.CHECK:
            task = tasks.FETCH
            wanted |= {"data_dir": str(self._data_dir), "keep_free": self._room.keep_free}
        if lane is Lane.PREPARE:
            task = tasks.PREPARE
            wanted |= {"edition": edition_named(dataset.edition), "options": dataset.source}
        for work in self._working.values():
            work.company = True
        work = _Work(dataset, lane, free_bytes(self._data_dir), company=bool(self._working))
        self._working[self._pool.start(task, wanted)] = work

    def _hear_progress(self, work: _Work, news: Progressed) -> None:
        now = self._clock.monotonic()
        if news.step == work.step and now - work.told_at < _PROGRESS_SECONDS:
            work.untold = news  # the screen can't show more, and every change is a disk write
            return
        work.untold = None
        self._notes.progress(work.dataset, work.step, news)
        work.step = news.step
        work.told_at = now

    def _hear_end(self, work: _Work, news: Ended) -> None:
        dataset = work.dataset
        key = (dataset.competition_id, dataset.edition)
        if work.cancelled:
            self._notes.stopped(dataset)
        elif news.lost and self._blameless.get(key, 0) < _BLAMELESS_TRIES:
            self._blameless[key] = self._blameless.get(key, 0) + 1
            self._notes.put_back(dataset)
        elif news.kind in (DiskFull.__name__, Claimed.__name__):
            self._wait(work, news)
        elif news.value is None:
            usual = {Lane.CHECK: CHECK, Lane.DOWNLOAD: DOWNLOAD}.get(work.lane, PREPARE)
            self._notes.failed(dataset, work.step or usual, news, state_after(news.kind))
        elif work.lane is Lane.CHECK:
            self._notes.offered(dataset, news.value["bytes"])
        elif work.lane is Lane.DOWNLOAD:
            self._notes.fetched(dataset)
        else:
            self._notes.prepared(dataset, int(news.value["bytes_on_disk"]))

    def _wait(self, work: _Work, news: Ended) -> None:
        """Keep a dataset in the queue until what stopped it may be over."""
        dataset = work.dataset
        assert news.problem is not None
        self._notes.put_back(dataset, news.problem.in_one_line())
        if news.kind == Claimed.__name__:
            not_before = self._clock.monotonic() + _CLAIMED_SECONDS
            self._not_yet[dataset.competition_id, dataset.edition] = lambda: (
                self._clock.monotonic() < not_before
            )
            return
        # What a preparation wrote is gone again, what was downloaded stays and is gone on with.
        before = free_bytes(self._data_dir) if work.lane is Lane.DOWNLOAD else work.free_before
        company = work.company

        def too_full() -> bool:
            if company and not self._working:
                return False  # it may fit when nothing else takes space at the same time
            return free_bytes(self._data_dir) < before + _MORE_SPACE_BYTES

        self._not_yet[dataset.competition_id, dataset.edition] = too_full
