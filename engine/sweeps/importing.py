"""Making a sweep of run groups that were copied here: its runs wait for nothing but their grade."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from engine import datasets as preparation
from engine.control.answers import Answer
from engine.places import Places
from engine.runs.launching import edition_named
from engine.supervisor.arguments import Arguments
from engine.sweeps.launch import check_name
from engine.sweeps.staging import (
    ARRIVING,
    FILES,
    SNAPSHOT,
    ImportedRun,
    below_sweep,
    is_abandoned,
    read_staged,
)
from foundation.clock import Clock
from foundation.problems import DataProblem, UsageProblem
from state import experiments, runs, submissions, sweeps, transitions
from state.database import Database
from state.lifecycle import Outcome, SweepState
from state.records import IMPORTED, SweepSpec
from state.submissions import Snapshot
from state.transitions import Exit

_TAKEN = "taken-"


class SweepImport:
    """Answers `sweep.import`: makes a sweep of what was copied, whose runs wait for nothing but their grade."""

    def __init__(self, database: Database, places: Places, clock: Clock) -> None:
        self._database = database
        self._places = places
        self._clock = clock
        self._arriving = places.state_dir / ARRIVING

    @property
    def handlers(self) -> dict[str, Callable[[Arguments, str], Answer]]:
        """What is answered here."""
        return {"sweep.import": self.import_}

    def recover(self) -> None:
        """Remove what was being copied when its program was killed, and settle what was decided."""
        self.settle()
        for place in self._arriving.glob("*"):
            if is_abandoned(place):
                shutil.rmtree(place)

    def settle(self) -> None:
        """Put what was taken where its sweep looks for it; not earlier, since a sweep may not come to be."""
        for place in self._arriving.glob(f"{_TAKEN}*"):
            sweep_id = place.name.removeprefix(_TAKEN)
            folder = self._places.runs_dir / sweep_id
            if sweeps.find(self._database, sweep_id) is not None and not folder.exists():
                self._places.runs_dir.mkdir(exist_ok=True)
                (place / FILES).rename(folder)
            shutil.rmtree(place)

    def import_(self, arguments: Arguments, _by: str) -> Answer:
        """Make the sweep; within the transaction of the answer."""
        place = self._arriving / Path(arguments.text("place")).name
        sweep_id = check_name(arguments.text("name"))
        agent = arguments.text("agent_id")
        edition = edition_named(arguments.text("edition", "v1"))
        limit = arguments.optional_number("time_limit_seconds")
        experiment = arguments.text("experiment", "")
        arguments.done()
        found = read_staged(place)
        folder = self._places.runs_dir / sweep_id
        if folder.exists() or sweeps.find(self._database, sweep_id) is not None:
            raise UsageProblem(f"there is already a sweep '{sweep_id}'", "", "Choose another name.")
        spec = SweepSpec(
            agent_id=agent,
            agents_dir="",
            competitions=tuple(dict.fromkeys(run.competition_id for run in found)),
            seeds=max(run.seed for run in found),
            time_limit_seconds=limit or 0.0,
            edition=edition,
            runtime=IMPORTED,
            network="",
            data_dir=str(self._places.data_dir),
        )
        self._require_data(spec, {run.competition_id for run in found if run.sha256})
        now = self._clock.now()
        sweeps.create(
            self._database,
            sweep_id=sweep_id,
            name=sweep_id,
            spec=spec,
            agent_folder="",
            agent_version="",
            concurrency=1,
            members=[(run.competition_id, run.seed) for run in found],
            now=now,
        )
        sweeps.set_state(self._database, sweep_id, SweepState.STOPPED, now=now)
        for run, made in zip(found, runs.of_sweep(self._database, sweep_id), strict=True):
            self._take(run, made.id, f"runs/{sweep_id}/{below_sweep(run)}", now)
        if experiment:
            experiments.assign(self._database, experiment, sweep_id, now=now)
        place.rename(self._arriving / f"{_TAKEN}{sweep_id}")
        return Answer(
            f"sweep {sweep_id} is imported with {len(found)} runs, which are being graded", sweep_id
        )

    def _require_data(self, spec: SweepSpec, wanted: set[str]) -> None:
        edition = edition_named(spec.edition)
        for competition_id in sorted(wanted):
            if not preparation.is_ready(competition_id, edition, self._places.data_dir):
                raise DataProblem(
                    f"the dataset of {competition_id} is not prepared",
                    "what is imported is graded",
                    f"Prepare it first: mlebench-console prepare -c {competition_id}",
                )

    def _take(self, run: ImportedRun, run_id: int, directory: str, now: float) -> None:
        attempt = transitions.launch(self._database, run_id, directory=directory, runtime=IMPORTED, now=now)
        transitions.agent_ended(self._database, attempt.id, Exit(None, None, IMPORTED), at=now, now=now)
        transitions.collected(self._database, attempt.id, now=now)
        if not run.sha256:
            transitions.finished(self._database, attempt.id, Outcome.NO_SUBMISSION, now=now)
            return
        path = f"{directory}/{SNAPSHOT}"
        taken = Snapshot(1, run.taken_at, 0.0, run.sha256, run.bytes, path, final=True)
        submissions.add(self._database, attempt.id, taken)
