"""What consoles and commands may ask about datasets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from competitions.model import edition_named
from engine.datasets import plans
from engine.datasets.descriptions import OURS, check_choice
from engine.datasets.plans import BUSY, Options
from engine.datasets.pruning import CORRECTED, PREPARED
from engine.datasets.queue import DatasetQueue
from engine.options import requests
from engine.options.requests import Answer
from foundation.clock import Clock
from foundation.problems import DataProblem, UsageProblem
from state import datasets, runs, sweeps
from state.database import Database
from state.records import Dataset, DatasetState

_STEP_APART = 1e-6


class DatasetRequests:
    """Answers requests about datasets; called within the transaction of the answer."""

    def __init__(self, database: Database, queue: DatasetQueue, data_dir: Path, clock: Clock) -> None:
        self._database = database
        self._queue = queue
        self._data_dir = data_dir
        self._clock = clock

    @property
    def handlers(self) -> dict[str, Callable[[Any, str], Answer]]:
        """What is answered here, by the names of the requests."""
        return {
            "dataset.prepare": self.prepare,
            "dataset.stop": self.stop,
            "dataset.verify": self.verify,
            "dataset.prune": self.prune,
        }

    def prepare(self, arguments: requests.PrepareDatasets, _by: str) -> Answer:
        """Put datasets in the queue in the order given; those that are prepared are left alone."""
        chosen, edition = arguments.competition_ids, edition_named(arguments.edition)
        options = Options(
            verify=False if arguments.skip_verification else None,
            keep_raw=arguments.keep_raw,
            discard_zip=arguments.discard_zip,
            descriptions=check_choice(arguments.descriptions or OURS),
        )
        keep_going = len(chosen) > 1 if arguments.keep_going is None else arguments.keep_going
        if arguments.jobs is not None:
            if arguments.jobs < 1:
                raise UsageProblem(f"'jobs' must be at least 1, not {arguments.jobs}")
            self._queue.set_jobs(arguments.jobs)
        now = self._clock.now()
        asked = failed = 0
        for number, competition_id in enumerate(chosen):
            wanted_anew = arguments.raw_dir or arguments.again
            if not wanted_anew and plans.is_ready(competition_id, edition, self._data_dir):
                plans.record_prepared(self._database, competition_id, edition, now=now)
                continue
            try:
                wanted = plans.plan(
                    competition_id, edition, self._data_dir, raw_dir=arguments.raw_dir, options=options
                )
            except DataProblem as problem:
                if not keep_going:
                    raise
                text = problem.in_one_line()
                state = DatasetState.FAILED
                datasets.set_state(self._database, competition_id, edition, state, now=now, problem=text)
                failed += 1
                continue
            plans.request(self._database, wanted, now=now + number * _STEP_APART)
            self._queue.forget(competition_id, edition)
            asked += 1
        there = len(chosen) - asked - failed
        parts = [f"{_datasets(asked)} requested"] if asked else []
        parts += [f"{_datasets(there)} already prepared"] if there else []
        parts += [f"{_datasets(failed)} without raw data"] if failed else []
        return Answer(", ".join(parts))

    def stop(self, arguments: requests.SomeDatasets, _by: str) -> Answer:
        """Stop preparing or verifying; what is downloaded stays and is resumed by the next request."""
        verifying = self._queue.verifications
        busy = [one for one in self._known(arguments) if one.state in BUSY or verifying.knows(one)]
        if not busy:
            raise UsageProblem("none of them is being prepared or verified")
        for dataset in busy:
            self._queue.stop(dataset)
        return Answer(f"{_datasets(len(busy))} being stopped")

    def verify(self, arguments: requests.SomeDatasets, _by: str) -> Answer:
        """Compare prepared datasets with what is known of them."""
        edition = edition_named(arguments.edition)
        for competition_id in arguments.competition_ids:
            if not plans.is_ready(competition_id, edition, self._data_dir):
                raise UsageProblem(f"{competition_id} is not prepared", "", "Prepare it first.")
            plans.record_prepared(self._database, competition_id, edition, now=self._clock.now())
        known = self._known(arguments)
        for dataset in known:
            self._queue.verifications.ask(dataset)
        return Answer(f"{_datasets(len(known))} being verified")

    def prune(self, arguments: requests.PruneDatasets, _by: str) -> Answer:
        """Remove parts of datasets from the disk; prepared data that runs wait for stay."""
        pruned = []
        for competition_id in arguments.competition_ids:
            problem = self._why_not_prune(competition_id, arguments)
            if problem is None:
                pruned.append(competition_id)
            elif arguments.keep_going:
                self._queue.records.not_pruned(competition_id, problem)
            else:
                raise problem
        for competition_id in pruned:
            self._queue.prune(competition_id, arguments.parts)
        return Answer(f"{_datasets(len(pruned))} being pruned")

    def _why_not_prune(self, competition_id: str, asked: requests.PruneDatasets) -> UsageProblem | None:
        dataset = datasets.find(self._database, competition_id, edition_named(asked.edition))
        if dataset is not None and dataset.state in BUSY:
            return UsageProblem(f"{competition_id} is being prepared", "", "Stop that first.")
        user = sweep_in_need_of(self._database, competition_id)
        if user is not None and {PREPARED, CORRECTED} & {*asked.parts}:
            return UsageProblem(
                f"{competition_id} can't be pruned", f"sweep {user} has runs of it that have not ended"
            )
        return None

    def _known(self, asked: requests.SomeDatasets) -> list[Dataset]:
        edition = edition_named(asked.edition)
        found = (datasets.find(self._database, one, edition) for one in asked.competition_ids)
        return [dataset for dataset in found if dataset is not None]


def sweep_in_need_of(database: Database, competition_id: str) -> str | None:
    """A sweep with runs on a competition that have not ended; None: its data may go."""
    for sweep in sweeps.all_sweeps(database):
        if competition_id in sweep.spec.competitions:
            of_it = [run for run in runs.of_sweep(database, sweep.id) if run.competition_id == competition_id]
            if not all(run.has_ended for run in of_it):
                return sweep.id
    return None


def _datasets(count: int) -> str:
    return "1 dataset is" if count == 1 else f"{count} datasets are"
