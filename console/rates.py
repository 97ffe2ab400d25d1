"""The rate and remaining time of anything in progress, measured over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

_WINDOW_SECONDS = 20.0
_LEAST_SECONDS = 1.0


@dataclass(frozen=True)
class Pace:
    """Progress per second, and the remaining seconds; None if unknown."""

    rate: float | None = None
    eta: float | None = None


class Rates:
    """Measures the pace of things from their recent progress."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, deque[tuple[float, int]]] = {}

    def measure(self, key: Hashable, done: int, total: int | None, now: float) -> Pace:
        """Record the progress of a thing and return its pace; the measurement restarts when progress goes back."""
        seen = self._seen.setdefault(key, deque())
        if seen and done < seen[-1][1]:
            seen.clear()
        if not seen or now > seen[-1][0]:
            seen.append((now, done))
        while len(seen) > 2 and now - seen[1][0] >= _WINDOW_SECONDS:
            seen.popleft()
        since, before = seen[0]
        if now - since < _LEAST_SECONDS:
            return Pace()
        rate = (done - before) / (now - since)
        if rate <= 0:
            return Pace(0.0)
        return Pace(rate, None if total is None else max(0, total - done) / rate)

    def keep_only(self, keys: set[Hashable]) -> None:
        """Forget the measurements of all other keys."""
        for key in set(self._seen) - keys:
            del self._seen[key]
