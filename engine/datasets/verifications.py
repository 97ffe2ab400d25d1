"""Verifying prepared datasets in worker processes, a few at once; a restart takes up what was asked for."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from competitions.model import edition_named
from engine.datasets import tasks
from engine.datasets.noting import Notebook
from engine.datasets.sources import CHECKSUM
from foundation.clock import Clock
from foundation.workers import Ended, Progressed, WorkerPool
from state import datasets
from state.database import Database
from state.records import Dataset, DatasetState, StepState

_TELL_SECONDS = 0.5


class Verifications:
    """Those that wait to be verified, in the order in which they were asked for, and those in hand."""

    def __init__(
        self, database: Database, pool: WorkerPool, notes: Notebook, clock: Clock, *, data_dir: Path
    ) -> None:
        self._database = database
        self._pool = pool
        self._notes = notes
        self._clock = clock
        self._data_dir = data_dir
        self._waiting: deque[Dataset] = deque()
        self._working: dict[int, Dataset] = {}
        self._stopped: set[int] = set()
        self._told_at = float("-inf")

    @property
    def working(self) -> int:
        """How many are in hand."""
        return len(self._working)

    def recover(self) -> None:
        """After a start: what an earlier engine was to verify, or did just then, waits again."""
        open_ = {
            (step.competition_id, step.edition)
            for step in datasets.all_steps(self._database)
            if step.name == CHECKSUM and step.state in (StepState.WAITING, StepState.WORKING)
        }
        prepared = datasets.in_state(self._database, DatasetState.PREPARED)
        self._waiting.extend(each for each in prepared if _key(each) in open_)

    def ask(self, dataset: Dataset) -> None:
        """Verify a dataset when there is room, unless that is so already."""
        if not self.knows(dataset):
            self._waiting.append(dataset)
            self._notes.to_verify(dataset)

    def knows(self, dataset: Dataset) -> bool:
        """Whether a dataset is being verified or waits for it."""
        return any(_key(each) == _key(dataset) for each in (*self._waiting, *self._working.values()))

    def step(self, room: int) -> None:
        """Start as many as there is room for."""
        while self._waiting and len(self._working) < room:
            dataset = self._waiting.popleft()
            wanted = {
                "competition_id": dataset.competition_id,
                "data_dir": str(self._data_dir),
                "edition": edition_named(dataset.edition),
            }
            self._working[self._pool.start(tasks.VERIFY, wanted)] = dataset

    def stop(self, dataset: Dataset) -> None:
        """Verify a dataset no longer."""
        for each in [each for each in self._waiting if _key(each) == _key(dataset)]:
            self._waiting.remove(each)
            self._notes.not_verified(each)
        for number, each in self._working.items():
            if _key(each) == _key(dataset):
                self._stopped.add(number)
                self._pool.cancel(number)

    def hear(self, news: Progressed | Ended) -> bool:
        """Take news of a task; False when the task is not one of ours."""
        dataset = self._working.get(news.number)
        if dataset is None:
            return False
        if isinstance(news, Progressed):
            now = self._clock.monotonic()
            if now - self._told_at >= _TELL_SECONDS:  # the screen can't show more
                self._told_at = now
                self._notes.verifying(dataset, news)
            return True
        del self._working[news.number]
        if news.number in self._stopped:
            self._stopped.remove(news.number)
            self._notes.not_verified(dataset)
        elif news.lost:
            self._waiting.appendleft(dataset)
        else:
            self._notes.verified(dataset, news)
        return True


def _key(dataset: Dataset) -> tuple[str, str]:
    return dataset.competition_id, dataset.edition
