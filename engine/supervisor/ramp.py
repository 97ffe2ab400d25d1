"""The start ramp: a sweep that asks for it starts its runs one by one, some time apart."""

from __future__ import annotations

import math

from foundation.clock import Clock
from state import runs
from state.database import Database
from state.records import Sweep


class StartRamp:
    """Remembers when each sweep last started a run; after a restart the state tells it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._started_at: dict[str, float] = {}

    def may_start(self, sweep: Sweep, at_most: int) -> int:
        """How many runs of a sweep may start now, of so many that could."""
        if not sweep.spec.start_ramp_seconds:
            return at_most
        last = self._started_at.get(sweep.id)
        if last is None:
            last = self._started_at[sweep.id] = self._of_the_state(sweep.id)
        return min(at_most, int(self._clock.monotonic() - last >= sweep.spec.start_ramp_seconds))

    def note_start(self, sweep_id: str) -> None:
        """A run of a sweep has been started."""
        self._started_at[sweep_id] = self._clock.monotonic()

    def _of_the_state(self, sweep_id: str) -> float:
        """The last start by the monotonic clock; a wall clock that was set back counts as just now."""
        started = runs.last_launch(self._database, sweep_id)
        since = math.inf if started is None else max(0.0, self._clock.now() - started)
        return self._clock.monotonic() - since
