"""Current failures by item, and when each item is tried again, with exponential back-off up to a limit."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mlebench_console.foundation.backoff import Backoff
from mlebench_console.foundation.clock import Clock

_BACKOFF = Backoff(first=5.0, most=60.0)
_MOST_SHOWN = 2

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class _Failing:
    text: str
    since: float
    failures: int
    retry_at: float


class Retries(Generic[Key]):
    """Keeps the current failure of each item; it decides only when to try again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failing: dict[Key, _Failing] = {}

    def note(self, key: Key, text: str) -> None:
        """Record a failure of an item, and why."""
        now = self._clock.monotonic()
        before = self._failing.get(key)
        since, failures = (now, 1) if before is None else (before.since, before.failures + 1)
        retry_at = now + _BACKOFF.seconds(failures)
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
