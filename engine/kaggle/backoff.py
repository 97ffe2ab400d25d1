"""How long to wait before a request to Kaggle is retried: twice as long each time, and as long as Kaggle demands."""

from __future__ import annotations

import random

FIRST_WAIT, LONGEST_WAIT = 1.0, 600.0
LONGEST_ASKED = 86_400.0
"""A longer Retry-After of Kaggle is cut to this."""

USUAL_PATIENCE = 300.0
"""The default for how many seconds to wait for Kaggle; the engine's queue has a schedule of its own."""

_SPREAD = 1.25  # so that clients that failed together don't retry together


def wait_seconds(failures: int, asked: float | None = None) -> float:
    """Return the randomised wait after a number of consecutive failures; `asked` is Kaggle's Retry-After."""
    doubled = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 30))
    return max(doubled, asked or 0.0) * random.uniform(1.0, _SPREAD)  # noqa: S311 - it spreads requests


def is_due(retry_at: float | None, now: float) -> bool:
    """Return whether it is time to retry; always, if `retry_at` is None."""
    # A time further ahead than the longest wait means that the clock was set back.
    return retry_at is None or not now < retry_at <= now + LONGEST_ASKED * _SPREAD
