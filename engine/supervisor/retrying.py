"""Queueing again what failed for the infrastructure: a few times, each time later, never an agent's own failure."""

from __future__ import annotations

from foundation.clock import Clock
from state import runs, sweeps, transitions
from state.database import Database
from state.lifecycle import FailureClass, SweepState
from state.records import Run

_FIRST_WAIT_SECONDS = 30.0
_LONGEST_WAIT_SECONDS = 900.0
_ENGINE = "engine"


class Retrier:
    """Looks for runs to retry in the sweeps that allow it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def step(self) -> None:
        """Queue again what has waited long enough."""
        now = self._clock.now()
        for sweep in sweeps.all_sweeps(self._database):
            if sweep.state is SweepState.ACTIVE and sweep.spec.retries:
                for run in runs.failed(self._database, sweep.id, FailureClass.INFRASTRUCTURE):
                    if self._is_due(run, sweep.spec.retries, now):
                        transitions.requeued(self._database, run.id, by=_ENGINE, now=now)

    def _is_due(self, run: Run, retries: int, now: float) -> bool:
        """Whether a run may be retried now; a class that an operator gave by hand starts nothing."""
        attempts = runs.attempts(self._database, run.id)
        if attempts[-1].classified_by != _ENGINE:
            return False
        failures = sum(attempt.failure_class is FailureClass.INFRASTRUCTURE for attempt in attempts)
        return failures <= retries and now - (run.ended_at or now) >= wait_seconds(failures)


def wait_seconds(failures: int) -> float:
    """How long to wait after so many failures: twice as long each time, up to a limit."""
    return min(_FIRST_WAIT_SECONDS * 2.0 ** (failures - 1), _LONGEST_WAIT_SECONDS)
