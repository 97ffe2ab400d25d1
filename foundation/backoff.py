"""How long to wait before something that has failed is tried again: longer after each failure, up to a limit."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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
