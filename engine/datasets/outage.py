"""Whether Kaggle may be asked: all jobs of an engine share one back-off, which outlives the engine in its state.

While Kaggle can't be reached, one job at a time tries whether it can be again, when the back-off is over.
"""

from __future__ import annotations

from dataclasses import replace

from engine.kaggle.backoff import is_due, wait_seconds
from engine.kaggle.credentials import Credentials, find_credentials
from foundation.clock import Clock
from state import datasets
from state.database import Database
from state.records import KaggleState

_LOOK_SECONDS = 2.0
_NOTED_SECONDS = 60.0


class Outage:
    """Keeps since when Kaggle can't be reached, and says when the next job may ask it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._refused: tuple[Credentials, ...] | None = None
        self._looked_at = float("-inf")

    @property
    def state(self) -> KaggleState:
        """What is known of Kaggle."""
        return datasets.kaggle(self._database)

    def may_try(self) -> bool:
        """Whether it is time to ask Kaggle again."""
        return is_due(self.state.retry_at, self._clock.now()) or self._has_other_credentials()

    def tries(self) -> None:
        """Note that a job asks Kaggle now: if it is killed before it answers, the next one waits all the same."""
        self._refused = None
        failures = self.state.failures + 1
        retry_at = self._clock.now() + wait_seconds(failures)
        self._set(replace(self.state, failures=failures, retry_at=retry_at))

    def has_not_asked(self) -> None:
        """Note that the job that was to try could not even ask."""
        self._set(replace(self.state, retry_at=self._clock.now()))

    def failed(self, why: str, retry_after: float | None = None, *, tried: bool) -> None:
        """Note that a job could not reach Kaggle; `tried`: it was the one to try whether that is over."""
        state, now = self.state, self._clock.now()
        if state.unreachable_since is None:
            state = replace(state, unreachable_since=now, failures=1, retry_at=None)
            tried = True
        retry_at = now + (wait_seconds(state.failures, retry_after) if tried else retry_after or 0.0)
        if not tried:  # it began before the outage: what it has met counts once
            retry_at = max(retry_at, state.retry_at or 0.0)
        self._set(replace(state, retry_at=retry_at, problem=why))

    def refused(self, why: str, *, tried: bool) -> None:
        """Note that Kaggle accepts the credentials no longer; it is asked again at once when there are others."""
        self.failed(why, tried=tried)
        self._refused = find_credentials()

    def answered(self, *, tried: bool) -> None:
        """Note that Kaggle has answered; what a job heard that began before an outage says nothing about that."""
        state, now = self.state, self._clock.now()
        if state.unreachable_since is not None:
            if not tried:
                return
        elif state.accepted_at is not None and 0 <= now - state.accepted_at < _NOTED_SECONDS:
            return
        self._refused = None
        self._set(KaggleState(accepted_at=now))

    def forget(self) -> None:
        """Forget that Kaggle could not be reached, for whoever asks the next time."""
        self._set(KaggleState(accepted_at=self.state.accepted_at))

    def _set(self, state: KaggleState) -> None:
        datasets.set_kaggle(self._database, state, now=self._clock.now())

    def _has_other_credentials(self) -> bool:
        now = self._clock.monotonic()
        if self._refused is None or now - self._looked_at < _LOOK_SECONDS:
            return False
        self._looked_at = now
        return self._refused != find_credentials()
