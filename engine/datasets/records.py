"""Record changes of datasets in the state: one method for each kind of change."""

from __future__ import annotations

from mlebench_console.engine.datasets.steps import (
    CHECK,
    CHECKSUM,
    DOWNLOAD,
    EXTRACT,
    VERIFY,
)
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.problems import DataProblem, Problem, ProblemRecord
from mlebench_console.foundation.text import gigabytes
from mlebench_console.foundation.workers import Ended, Progressed
from mlebench_console.state import datasets, events
from mlebench_console.state.database import Database
from mlebench_console.state.datasets import Progress
from mlebench_console.state.event_records import DatasetPruned, DatasetVerified, EventData, EventKind
from mlebench_console.state.records import Dataset, DatasetState, DatasetStep, StepState, VerificationKind

_IN_BYTES = frozenset({DOWNLOAD, VERIFY, EXTRACT})


class DatasetRecords:
    """Writes changes of datasets into the state."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def working(self, dataset: Dataset) -> None:
        """Record that a job works on it."""
        self._set_state(dataset, DatasetState.WORKING)

    def progress(self, dataset: Dataset, before: str, news: Progressed) -> None:
        """Record the progress of a step, and that the step before it is done."""
        with self._database.transaction():
            if before and news.step != before:
                self._finish(dataset, before)
            known = next((step.total for step in self._steps(dataset) if step.name == news.step), None)
            total = news.total or known
            unit = "" if total is None else "bytes" if news.step in _IN_BYTES else "items"
            self._set_step(dataset, news.step, Progress(StepState.WORKING, news.done, total, unit, news.what))

    def offered(self, dataset: Dataset, size: int | None) -> None:
        """Record that Kaggle offers it; it waits to be downloaded."""
        with self._database.transaction():
            datasets.set_retry(self._database, *dataset.key)
            self._finish(dataset, CHECK)
            self._set_step(dataset, DOWNLOAD, Progress(StepState.WAITING, 0, size, "bytes" if size else ""))
            self._set_state(dataset, DatasetState.WAITING)

    def fetched(self, dataset: Dataset) -> None:
        """Record that its zip is downloaded; it waits to be prepared."""
        with self._database.transaction():
            datasets.set_retry(self._database, *dataset.key)
            self._finish(dataset, DOWNLOAD)
            self._set_state(dataset, DatasetState.WAITING)

    def prepared(self, dataset: Dataset, bytes_on_disk: int | None, *, demo: bool) -> None:
        """Record that it is prepared, from real or demo data."""
        with self._database.transaction():
            datasets.set_demo(self._database, *dataset.key, demo)
            for step in self._steps(dataset):
                if step.state not in (StepState.SKIPPED, StepState.DONE):  # keeps the end times of done steps
                    self._finish(dataset, step.name)
            self._set_state(dataset, DatasetState.PREPARED, bytes_on_disk=bytes_on_disk)

    def failed(self, dataset: Dataset, step: str, problem: Problem, state: DatasetState) -> None:
        """Record that its preparation failed."""
        with self._database.transaction():
            self._set_step(dataset, step, Progress(StepState.FAILED, note=problem.what))
            self._set_state(dataset, state, problem)

    def waits(self, dataset: Dataset, why: Problem) -> None:
        """Record why it still waits."""
        if dataset.problem_record != why.record:
            with self._database.transaction():
                self._set_problem(dataset, why.record)

    def put_back(self, dataset: Dataset, why: Problem | None = None) -> None:
        """Record that it waits again; a finished download stays done."""
        with self._database.transaction():
            for step in self._steps(dataset):
                kept = step.name in (CHECK, DOWNLOAD) and step.state is StepState.DONE
                if step.state is not StepState.SKIPPED and not kept:
                    waiting = Progress(StepState.WAITING, 0, step.total, step.unit)
                    self._set_step(dataset, step.name, waiting)
            self._set_state(dataset, DatasetState.WAITING, why)

    def put_off(self, dataset: Dataset, why: Problem, seconds: float, *, failures: int) -> None:
        """Record a temporary failure: it waits, and is retried after some seconds.

        `failures` is the number of such failures so far.
        """
        now = self._clock.now()
        with self._database.transaction():
            self.put_back(dataset, why)
            datasets.set_retry(
                self._database,
                *dataset.key,
                failures=failures,
                failing_since=now if dataset.failing_since is None else dataset.failing_since,
                retry_at=now + seconds,
            )

    def stopped(self, dataset: Dataset) -> None:
        """Record that it was stopped on request."""
        with self._database.transaction():
            self.put_back(dataset)
            self._set_state(dataset, DatasetState.ABSENT)

    def gone(self, dataset: Dataset) -> None:
        """Record that its prepared data are no longer on the disk."""
        with self._database.transaction():
            for step in self._steps(dataset):
                self._set_step(dataset, step.name, Progress(StepState.WAITING))
            self._set_state(dataset, DatasetState.ABSENT)

    def pruned(self, competition_id: str, news: Ended) -> None:
        """Record that parts of it were removed from the disk, or could not be."""
        if news.problem is not None:
            self.not_pruned(competition_id, news.problem)
            return
        freed = int(news.value["bytes"])
        text = f"pruned, {gigabytes(freed)} freed"
        self._append(EventKind.DATASET_PRUNED, competition_id, text, DatasetPruned(freed))

    def not_pruned(self, competition_id: str, problem: Problem) -> None:
        """Record that parts of it could not be removed from the disk."""
        text = f"not pruned: {problem.in_one_line()}"
        detail = DatasetPruned(problem=str(problem))
        self._append(EventKind.DATASET_PRUNED, competition_id, text, detail)

    def settled(self, competition_id: str, news: Ended) -> None:
        """Record why the files of a killed preparation could not be cleaned up, if so."""
        if news.problem is not None:
            text = f"left over from a killed preparation: {news.problem.in_one_line()}"
            self._append(EventKind.DATASET_LEFTOVER, competition_id, text)

    def to_verify(self, dataset: Dataset, kind: VerificationKind) -> None:
        """Record that it waits to be verified."""
        with self._database.transaction():
            datasets.set_verification(self._database, *dataset.key, kind)
            self._set_step(dataset, CHECKSUM, Progress(StepState.WAITING, note="to be verified"))

    def verifying(self, dataset: Dataset, news: Progressed) -> None:
        """Record the progress of its verification."""
        progress = Progress(StepState.WORKING, news.done, news.total or None, "bytes", news.what)
        self._set_step(dataset, CHECKSUM, progress)

    def not_verified(self, dataset: Dataset) -> None:
        """Record that its verification was stopped on request."""
        self._set_step(dataset, CHECKSUM, Progress(StepState.DONE, note="not verified: stopped"))

    def verified(self, dataset: Dataset, news: Ended) -> None:
        """Record the result of its verification."""
        problem: ProblemRecord | None = None
        if news.problem is not None:
            problem = news.problem.record.without_subject()
            summary = problem.in_one_line()
            detail = DatasetVerified(dataset.edition, problem=str(news.problem))
        else:
            detail = DatasetVerified(dataset.edition, **news.value)
            if detail.differs:
                problem = DataProblem(detail.differs).record
            what = f"{detail.files} files" if detail.files else f"{len(detail.sums)} tables"
            summary = detail.differs or f"{what} are as expected"
            if detail.demo:
                summary = f"demo data, made up: {summary}"
        with self._database.transaction():
            self._set_problem(dataset, problem)
            self._set_step(dataset, CHECKSUM, Progress(StepState.DONE, note=summary))
            text = datasets.event_text(summary, dataset.edition)
            self._append(EventKind.DATASET_VERIFIED, dataset.competition_id, text, detail)

    def _append(
        self, kind: EventKind, competition_id: str, text: str, detail: EventData | None = None
    ) -> None:
        now = self._clock.now()
        with self._database.transaction():
            events.append(self._database, now, kind, text, competition_id=competition_id, detail=detail)

    def _finish(self, dataset: Dataset, name: str) -> None:
        """Set a step to done, with its whole total."""
        for step in self._steps(dataset):
            if step.name == name:
                total = step.total or step.done
                self._set_step(dataset, name, Progress(StepState.DONE, total, step.total, step.unit))

    def _steps(self, dataset: Dataset) -> list[DatasetStep]:
        return datasets.steps(self._database, *dataset.key)

    def _set_state(
        self,
        dataset: Dataset,
        state: DatasetState,
        problem: Problem | None = None,
        *,
        bytes_on_disk: int | None = None,
    ) -> None:
        datasets.set_state(
            self._database,
            *dataset.key,
            state,
            now=self._clock.now(),
            problem=None if problem is None else problem.record,
            bytes_on_disk=bytes_on_disk,
        )

    def _set_problem(self, dataset: Dataset, problem: ProblemRecord | None) -> None:
        now = self._clock.now()
        datasets.set_problem(self._database, *dataset.key, problem, now=now)

    def _set_step(self, dataset: Dataset, name: str, progress: Progress) -> None:
        datasets.set_step(self._database, *dataset.key, name, progress, now=self._clock.now())
