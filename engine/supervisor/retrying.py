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
        self._seen_at: dict[int, float] = {}

    def step(self) -> None:
        """Queue again what has waited long enough."""
        now = self._clock.now()
        waiting: dict[int, float] = {}
        for sweep in sweeps.all_sweeps(self._database):
            if sweep.state is SweepState.ACTIVE and sweep.spec.retries:
                for run in runs.failed(self._database, sweep.id, FailureClass.INFRASTRUCTURE):
                    waiting[run.id] = self._seen_at.get(run.id, self._clock.monotonic())
                    if self._is_due(run, sweep.spec.retries, waiting[run.id]):
                        transitions.requeued(self._database, run.id, by=_ENGINE, now=now)
                        del waiting[run.id]
        self._seen_at = waiting

    def _is_due(self, run: Run, retries: int, seen_at: float) -> bool:
        """Whether a run may be retried now; a class that an operator gave by hand starts nothing.

        It has waited since it failed, or since it was first seen where the wall clock was set back.
        """
        attempts = runs.attempts(self._database, run.id)
        if attempts[-1].classified_by != _ENGINE:
            return False
        failures = sum(attempt.failure_class is FailureClass.INFRASTRUCTURE for attempt in attempts)
        now = self._clock.now()
        waited = max(now - (run.ended_at or now), self._clock.monotonic() - seen_at)
        return failures <= retries and waited >= wait_seconds(failures)


def wait_seconds(failures: int) -> float:
    """How long to wait after so many failures: twice as long each time, up to a limit."""
    return min(_FIRST_WAIT_SECONDS * 2.0 ** (failures - 1), _LONGEST_WAIT_SECONDS)
