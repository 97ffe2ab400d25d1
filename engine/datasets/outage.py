"""The back-off for requests to Kaggle, shared by all jobs of an engine and saved in its state.

While Kaggle can't be reached, only one job at a time tries again, when the back-off is over.
"""

from __future__ import annotations

from dataclasses import replace

from mlebench_console.engine.downloads import BACKOFF
from mlebench_console.engine.kaggle import LONGEST_ASKED
from mlebench_console.engine.kaggle.credentials import Credentials, find_credentials
from mlebench_console.foundation.backoff import is_due
from mlebench_console.foundation.clock import Clock
from mlebench_console.state import datasets
from mlebench_console.state.database import Database
from mlebench_console.state.records import KaggleState

_CREDENTIALS_SECONDS = 2.0
_NOTED_SECONDS = 60.0


def is_due_for_kaggle(retry_at: float | None, now: float) -> bool:
    """Return whether it is time to ask Kaggle again."""
    return is_due(retry_at, now, longest=LONGEST_ASKED * (1.0 + BACKOFF.jitter))


class Outage:
    """Records since when Kaggle can't be reached, and decides when the next job may try."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._refused: tuple[Credentials, ...] | None = None
        self._credentials_read_at = float("-inf")

    @property
    def state(self) -> KaggleState:
        """The recorded state of Kaggle."""
        return datasets.kaggle(self._database)

    def may_try(self) -> bool:
        """Return whether it is time to try Kaggle again."""
        return is_due_for_kaggle(self.state.retry_at, self._clock.now()) or self._has_other_credentials()

    def tries(self) -> None:
        """Record that a job tries Kaggle now, so that the next one waits even if this job is killed."""
        self._refused = None
        failures = self.state.failures + 1
        retry_at = self._clock.now() + BACKOFF.seconds(failures)
        self._set(replace(self.state, failures=failures, retry_at=retry_at))

    def not_asked(self) -> None:
        """Record that the trying job ended without a request to Kaggle."""
        self._set(replace(self.state, retry_at=self._clock.now()))

    def failed(self, why: str, retry_after: float | None = None, *, tried: bool) -> None:
        """Record that a job could not reach Kaggle; `tried` says whether it was the trying job."""
        state, now = self.state, self._clock.now()
        if state.unreachable_since is None:
            state = replace(state, unreachable_since=now, failures=1, retry_at=None)
            tried = True
        asked = retry_after or 0.0
        retry_at = now + (BACKOFF.seconds(state.failures, at_least=asked) if tried else asked)
        if not tried:  # it started before the outage, and must not count as another failure
            retry_at = max(retry_at, state.retry_at or 0.0)
        self._set(replace(state, retry_at=retry_at, problem=why))

    def refused(self, why: str, *, tried: bool) -> None:
        """Record that Kaggle no longer accepts the credentials; with new ones it is tried again immediately."""
        self.failed(why, tried=tried)
        self._refused = find_credentials()

    def answered(self, *, tried: bool) -> None:
        """Record an answer of Kaggle; during an outage, only that of the trying job counts."""
        state, now = self.state, self._clock.now()
        if state.unreachable_since is not None:
            if not tried:
                return
        elif state.accepted_at is not None and 0 <= now - state.accepted_at < _NOTED_SECONDS:
            return
        self._refused = None
        self._set(KaggleState(accepted_at=now))

    def forget(self) -> None:
        """Reset the outage, so that the next request is tried immediately."""
        self._set(KaggleState(accepted_at=self.state.accepted_at))

    def _set(self, state: KaggleState) -> None:
        datasets.set_kaggle(self._database, state, now=self._clock.now())

    def _has_other_credentials(self) -> bool:
        now = self._clock.monotonic()
        if self._refused is None or now - self._credentials_read_at < _CREDENTIALS_SECONDS:
            return False
        self._credentials_read_at = now
        return self._refused != find_credentials()
