"""Handle requests of consoles and commands about datasets."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from mlebench_console.competitions.model import Edition
from mlebench_console.engine.datasets import plans
from mlebench_console.engine.datasets.prepared.descriptions import OURS, check_choice
from mlebench_console.engine.datasets.prepared.pruning import CORRECTED, PREPARED
from mlebench_console.engine.datasets.queue import DatasetQueue
from mlebench_console.engine.requests import (
    Answer,
    DatasetsRequest,
    Handlers,
    PrepareDatasets,
    PrioritizeDatasets,
    PruneDatasets,
    StopDatasets,
    VerifyDatasets,
)
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.state import datasets, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Dataset, DatasetState

_STEP_APART = 1e-6
_PREPARED_PARTS: dict[Edition, str] = {"v1": PREPARED, "corrected": CORRECTED}


class DatasetRequests:
    """Handles requests about datasets; called within the transaction of the answer."""

    def __init__(self, database: Database, queue: DatasetQueue, data_dir: Path, clock: Clock) -> None:
        self._database = database
        self._queue = queue
        self._data_dir = data_dir
        self._clock = clock

    @property
    def handlers(self) -> Handlers:
        """The handlers of requests about datasets."""
        return {
            PrepareDatasets: self.prepare,
            StopDatasets: self.stop,
            VerifyDatasets: self.verify,
            PrioritizeDatasets: self.prioritize,
            PruneDatasets: self.prune,
        }

    def prepare(self, request: PrepareDatasets, _by: str) -> Answer:
        """Put datasets in the queue in the given order, except those that are already prepared.

        Raises:
            UsageProblem: one of them should be prepared again, but runs use it or wait for it.
        """
        chosen, edition = request.competition_ids, request.edition
        options = replace(request.options, descriptions=check_choice(request.options.descriptions or OURS))
        keep_going = len(chosen) > 1 if request.keep_going is None else request.keep_going
        if request.jobs is not None:
            if request.jobs < 1:
                raise UsageProblem(f"'jobs' must be at least 1, not {request.jobs}")
            self._queue.set_jobs(request.jobs)
        now = self._clock.now()
        requested = failed = 0
        again = bool(options.source or request.again)
        ready = [one for one in chosen if self._is_ready(one, edition)]
        for competition_id in ready if again else ():
            if not self._is_busy(competition_id, edition):  # otherwise it is queued for this already
                self._refuse_in_use(competition_id, {edition}, "prepared again")
        for number, competition_id in enumerate(chosen):
            if not again and competition_id in ready:
                plans.record_prepared(self._database, competition_id, edition, self._data_dir, now=now)
                continue
            try:
                wanted = plans.plan(competition_id, edition, self._data_dir, options)
            except DataProblem as problem:
                if not keep_going:
                    raise
                datasets.set_state(
                    self._database,
                    competition_id,
                    edition,
                    DatasetState.FAILED,
                    now=now,
                    problem=problem.record,
                )
                failed += 1
                continue
            plans.request(self._database, wanted, now=now + number * _STEP_APART)
            datasets.set_priority(self._database, competition_id, edition, request.priority)
            self._queue.forget(competition_id, edition)
            requested += 1
        prepared = len(chosen) - requested - failed
        parts = [f"{_datasets(requested)} requested"] if requested else []
        parts += [f"{_datasets(prepared)} already prepared"] if prepared else []
        parts += [f"{_datasets(failed)} without raw data"] if failed else []
        return Answer(", ".join(parts))

    def prioritize(self, request: PrioritizeDatasets, _by: str) -> Answer:
        """Change the priority of waiting datasets."""
        waiting = [one for one in self._known(request) if one.state.is_busy]
        if not waiting:
            raise UsageProblem("none of them waits to be prepared")
        for one in waiting:
            datasets.set_priority(self._database, one.competition_id, one.edition, request.value)
        return Answer(f"{_datasets(len(waiting))} now at priority {request.value}")

    def stop(self, request: StopDatasets, _by: str) -> Answer:
        """Stop preparing or verifying datasets; partial downloads stay and are resumed by the next request."""
        verifying = self._queue.verifications
        busy = [one for one in self._known(request) if one.state.is_busy or verifying.knows(one)]
        if not busy:
            raise UsageProblem("none of them is being prepared or verified")
        for dataset in busy:
            self._queue.stop(dataset)
        return Answer(f"{_datasets(len(busy))} being stopped")

    def verify(self, request: VerifyDatasets, _by: str) -> Answer:
        """Verify prepared datasets."""
        edition = request.edition
        for competition_id in request.competition_ids:
            if not plans.is_ready(competition_id, edition, self._data_dir):
                raise UsageProblem(f"{competition_id} is not prepared", "", "Prepare it first.")
            self._refuse_being_prepared(competition_id, edition)
            now = self._clock.now()
            plans.record_prepared(self._database, competition_id, edition, self._data_dir, now=now)
        known = self._known(request)
        for dataset in known:
            self._queue.verifications.ask(dataset, request.verification)
        return Answer(f"{_datasets(len(known))} being verified")

    def prune(self, request: PruneDatasets, _by: str) -> Answer:
        """Remove parts of datasets from the disk, except prepared data that runs use or wait for."""
        pruned = []
        for competition_id in request.competition_ids:
            try:
                self._refuse_pruning(competition_id, request)
            except UsageProblem as problem:
                if not request.keep_going:
                    raise
                self._queue.records.not_pruned(competition_id, problem)
            else:
                pruned.append(competition_id)
        for competition_id in pruned:
            self._queue.prune(competition_id, request.parts)
        return Answer(f"{_datasets(len(pruned))} being pruned")

    def _refuse_pruning(self, competition_id: str, request: PruneDatasets) -> None:
        self._refuse_being_prepared(competition_id, request.edition)
        editions = {edition for edition, part in _PREPARED_PARTS.items() if part in request.parts}
        self._refuse_in_use(competition_id, editions, "pruned")

    def _refuse_being_prepared(self, competition_id: str, edition: Edition) -> None:
        if self._is_busy(competition_id, edition):
            raise UsageProblem(f"{competition_id} is being prepared", "", "Stop that first.")

    def _is_ready(self, competition_id: str, edition: Edition) -> bool:
        """Return whether it is prepared; False if it can't be read, in which case its plan will fail."""
        try:
            return plans.is_ready(competition_id, edition, self._data_dir)
        except DataProblem:
            return False

    def _is_busy(self, competition_id: str, edition: Edition) -> bool:
        dataset = datasets.find(self._database, competition_id, edition)
        return dataset is not None and dataset.state.is_busy

    def _refuse_in_use(self, competition_id: str, editions: Set[Edition], done: str) -> None:
        """Refuse to remove or replace prepared data that runs use or wait for.

        Raises:
            UsageProblem: some do.
        """
        user = sweep_in_need_of(self._database, competition_id, editions)
        if user is not None:
            raise UsageProblem(
                f"{competition_id} can't be {done}",
                f"sweep {user} has runs of it that have not ended",
                f"Wait for them, or stop them: mlebench-console sweep stop {user}",
            )

    def _known(self, request: DatasetsRequest) -> list[Dataset]:
        edition = request.edition
        found = (datasets.find(self._database, one, edition) for one in request.competition_ids)
        return [dataset for dataset in found if dataset is not None]


def sweep_in_need_of(database: Database, competition_id: str, editions: Set[Edition]) -> str | None:
    """Return a sweep with unfinished runs on a competition in one of these editions; None: its data are not needed."""
    for sweep in sweeps.all_sweeps(database):
        if sweep.conditions.edition in editions and competition_id in sweep.spec.competitions:
            of_it = [run for run in runs.of_sweep(database, sweep.id) if run.competition_id == competition_id]
            if not all(run.has_ended for run in of_it):
                return sweep.id
    return None


def _datasets(count: int) -> str:
    return "1 dataset is" if count == 1 else f"{count} datasets are"
