"""When something that has failed is tried again: after a longer wait each time, up to a limit."""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

from mlebench_console.foundation.clock import Clock

_MOST_DOUBLINGS = 60  # beyond, a float would overflow


@dataclass(frozen=True)
class Backoff:
    """Waits that grow with each failure in a row.

    Attributes:
        first: the seconds after the first failure.
        most: the longest wait.
        factor: by how much each wait is longer than the one before.
        jitter: the largest random share that is added, so that clients that failed together don't retry together.
    """

    first: float
    most: float
    factor: float = 2.0
    jitter: float = 0.0

    def seconds(self, failures: int, *, at_least: float = 0.0) -> float:
        """Return the wait after a number of failures in a row; `at_least` may exceed the longest wait."""
        grown = self.first * self.factor ** min(max(failures - 1, 0), _MOST_DOUBLINGS)
        spread = random.uniform(1.0, 1.0 + self.jitter)  # noqa: S311 - it spreads requests
        return max(min(self.most, grown), at_least) * spread

    def seconds_after(self, failing_for: float) -> float:
        """Return the wait for something that has failed for some seconds: as long again."""
        return min(self.most, max(self.first, failing_for))


def is_due(retry_at: float | None, now: float, *, longest: float) -> bool:
    """Return whether it is time to try again; a time further ahead than the longest wait is of a wrong clock."""
    return retry_at is None or not now < retry_at <= now + longest


def seconds_asked(retry_after: str | None) -> float | None:
    """Return the seconds to wait of a Retry-After header, which has seconds or a date; None without a valid one."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


_USUAL = Backoff(first=5.0, most=60.0)
_MOST_SHOWN = 2

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class _Failing:
    text: str
    since: float
    failures: int
    retry_at: float


class Retries(Generic[Key]):
    """The current failures by item, and when each item is tried again; it tries nothing itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failing: dict[Key, _Failing] = {}

    def note(self, key: Key, text: str) -> None:
        """Record a failure of an item, and why."""
        now = self._clock.monotonic()
        before = self._failing.get(key)
        since, failures = (now, 1) if before is None else (before.since, before.failures + 1)
        retry_at = now + _USUAL.seconds(failures)
        self._failing[key] = _Failing(text.replace("\n", " "), since, failures, retry_at)

    def clear(self, key: Key) -> None:
        """Record that an item has succeeded."""
        self._failing.pop(key, None)

    def keep_only(self, keys: Collection[Key]) -> None:
        """Drop the failures of all other items."""
        self._failing = {key: failing for key, failing in self._failing.items() if key in keys}

    def must_wait(self, key: Key) -> bool:
        """Return whether it is too early to try an item again."""
        failing = self._failing.get(key)
        return failing is not None and self._clock.monotonic() < failing.retry_at

    def seconds(self, key: Key) -> float:
        """Return for how long an item has been failing; 0 if it is not."""
        failing = self._failing.get(key)
        return 0.0 if failing is None else self._clock.monotonic() - failing.since

    def __str__(self) -> str:
        """Return the failures in one line; empty when there are none."""
        texts = list(dict.fromkeys(failing.text for failing in self._failing.values()))
        more = len(texts) - _MOST_SHOWN
        return "; ".join(texts[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
