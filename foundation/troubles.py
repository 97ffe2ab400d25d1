"""What is wrong at the moment with which thing, and when each is tried again: later each time, up to a limit."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from foundation.clock import Clock

FIRST_WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 60.0
_MOST_TOLD = 2

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class _Trouble:
    text: str
    since: float
    wait: float
    retry_at: float


class Troubles(Generic[Key]):
    """Remembers trouble by the thing that has it; it ends nothing, it only waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Key, _Trouble] = {}

    def note(self, key: Key, text: str) -> None:
        """Note that something was tried and failed, and why."""
        now = self._clock.monotonic()
        before = self._known.get(key)
        wait = FIRST_WAIT_SECONDS if before is None else min(2 * before.wait, LONGEST_WAIT_SECONDS)
        since = now if before is None else before.since
        self._known[key] = _Trouble(text.replace("\n", " "), since, wait, now + wait)

    def clear(self, key: Key) -> None:
        """Note that something has gone well."""
        self._known.pop(key, None)

    def keep_only(self, keys: Collection[Key]) -> None:
        """Forget whatever is gone."""
        self._known = {key: trouble for key, trouble in self._known.items() if key in keys}

    def must_wait(self, key: Key) -> bool:
        """Tell whether it is too early to try something again."""
        trouble = self._known.get(key)
        return trouble is not None and self._clock.monotonic() < trouble.retry_at

    def seconds(self, key: Key) -> float:
        """Return for how long something has had trouble; 0 where it has none."""
        trouble = self._known.get(key)
        return 0.0 if trouble is None else self._clock.monotonic() - trouble.since

    def __str__(self) -> str:
        """Write what is wrong, in one line; empty when nothing is."""
        texts = list(dict.fromkeys(trouble.text for trouble in self._known.values()))
        more = len(texts) - _MOST_TOLD
        return "; ".join(texts[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
