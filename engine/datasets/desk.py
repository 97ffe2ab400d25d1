"""Working through the requested datasets with the worker processes; one that fails stops nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.datasets.planning import PREPARE
from engine.runs.launching import edition_named
from engine.workers import Ended, Limits, PrepareTask, Progressed, WorkerPool
from foundation.clock import Clock
from foundation.problems import Problem
from state import datasets
from state.database import Database
from state.datasets import Progress
from state.records import Dataset, DatasetState, StepState

_BLAMELESS_TRIES = 3
_PROGRESS_SECONDS = 0.5


@dataclass
class _Work:
    dataset: Dataset
    step: str = ""
    told_at: float = 0.0


class DatasetDesk:
    """Starts datasets as there is room for them, and keeps their steps in the state."""

    def __init__(
        self, database: Database, pool: WorkerPool, clock: Clock, *, data_dir: Path, at_once: int
    ) -> None:
        self._database = database
        self._pool = pool
        self._clock = clock
        self._data_dir = data_dir
        self._at_once = at_once
        self._working: dict[int, _Work] = {}
        self._blameless: dict[tuple[str, str], int] = {}

    @property
    def working(self) -> int:
        """How many datasets are being worked on."""
        return len(self._working)

    def recover(self) -> None:
        """After a start: what an earlier engine was working on waits again."""
        for dataset in datasets.in_state(self._database, DatasetState.WORKING):
            self._put_back(dataset)

    def step(self) -> None:
        """Start what there is room for."""
        if self.working >= self._at_once:
            return
        waiting = datasets.in_state(self._database, DatasetState.WAITING)
        for dataset in waiting[: self._at_once - self.working]:
            self._start(dataset)

    def hear(self, news: Progressed | Ended) -> bool:
        """Take news of a task; False when the task is not one of ours."""
        work = self._working.get(news.number)
        if work is None:
            return False
        if isinstance(news, Progressed):
            self._note_progress(work, news)
        else:
            del self._working[news.number]
            self._finish(work, news)
        return True

    def _start(self, dataset: Dataset) -> None:
        now = self._clock.now()
        datasets.set_state(
            self._database, dataset.competition_id, dataset.edition, DatasetState.WORKING, now=now
        )
        task = PrepareTask(
            dataset.competition_id,
            str(self._data_dir),
            edition_named(dataset.edition),
            dataset.source,
        )
        self._working[self._pool.start(task, Limits())] = _Work(dataset)

    def _note_progress(self, work: _Work, news: Progressed) -> None:
        now = self._clock.monotonic()
        if news.step == work.step and now - work.told_at < _PROGRESS_SECONDS:
            return  # the screen can't show more, and every change is a disk write
        with self._database.transaction():
            if work.step and news.step != work.step:
                self._set_step(work.dataset, work.step, Progress(StepState.DONE))
            total = news.total or None
            progress = Progress(StepState.WORKING, news.done, total, "items" if total else "", news.what)
            self._set_step(work.dataset, news.step, progress)
        work.step = news.step
        work.told_at = now

    def _finish(self, work: _Work, news: Ended) -> None:
        dataset = work.dataset
        key = (dataset.competition_id, dataset.edition)
        if news.blameless and self._blameless.get(key, 0) < _BLAMELESS_TRIES:
            self._blameless[key] = self._blameless.get(key, 0) + 1
            self._put_back(dataset)
            return
        now = self._clock.now()
        if news.value is None:
            assert news.problem is not None
            self._fail(work, news.problem, now)
            return
        with self._database.transaction():
            for step in datasets.steps(self._database, *key):
                if step.state is not StepState.SKIPPED:
                    self._set_step(dataset, step.name, Progress(StepState.DONE))
            datasets.set_state(
                self._database,
                *key,
                DatasetState.PREPARED,
                now=now,
                bytes_on_disk=news.value["bytes_on_disk"],
            )

    def _fail(self, work: _Work, problem: Problem, now: float) -> None:
        text = str(problem).replace("\n", " ")
        with self._database.transaction():
            failed = Progress(StepState.FAILED, note=problem.what)
            self._set_step(work.dataset, work.step or PREPARE, failed)
            datasets.set_state(
                self._database,
                work.dataset.competition_id,
                work.dataset.edition,
                DatasetState.FAILED,
                now=now,
                problem=text,
            )

    def _put_back(self, dataset: Dataset) -> None:
        with self._database.transaction():
            key = (dataset.competition_id, dataset.edition)
            for step in datasets.steps(self._database, *key):
                if step.state is not StepState.SKIPPED:
                    self._set_step(dataset, step.name, Progress(StepState.WAITING))
            datasets.set_state(self._database, *key, DatasetState.WAITING, now=self._clock.now())

    def _set_step(self, dataset: Dataset, name: str, progress: Progress) -> None:
        datasets.set_step(
            self._database, dataset.competition_id, dataset.edition, name, progress, now=self._clock.now()
        )
