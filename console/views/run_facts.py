"""One run as its screen shows it: its attempts, events and snapshots, and where its files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from competitions.model import Competition
from console.views.splits import competition
from environment.runner import protocol
from state import datasets, events, runs, submissions, sweeps
from state.database import Database
from state.dataset_records import Dataset
from state.records import Attempt, Event, Run, Submission, Sweep

_EVENTS_SHOWN = 500


@dataclass(frozen=True)
class RunFacts:
    """Everything that the state knows of one run; `state_dir` is what directories are relative to."""

    state_dir: Path
    run: Run
    sweep: Sweep
    competition: Competition | None
    attempts: tuple[Attempt, ...]
    events: tuple[Event, ...]
    submissions: tuple[Submission, ...]
    dataset: Dataset | None

    @property
    def attempt(self) -> Attempt | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def directory(self) -> Path | None:
        """Where the latest attempt lies."""
        return self.state_dir / self.attempt.directory if self.attempt else None

    @property
    def log(self) -> Path | None:
        """What the latest attempt printed."""
        return self.directory / protocol.LOG if self.directory else None


def run_facts(database: Database, run_id: int) -> RunFacts:
    """Read one run.

    Raises:
        UsageProblem: there is none of that number.
    """
    run = runs.get(database, run_id)
    sweep = sweeps.get(database, run.sweep_id)
    attempts = tuple(runs.attempts(database, run_id))
    return RunFacts(
        state_dir=database.path.parent,
        run=run,
        sweep=sweep,
        competition=competition(run.competition_id),
        attempts=attempts,
        events=tuple(events.newest(database, run_id=run_id, limit=_EVENTS_SHOWN)),
        submissions=tuple(submissions.of_attempt(database, attempts[-1].id)) if attempts else (),
        dataset=datasets.find(database, run.competition_id, sweep.spec.edition),
    )
