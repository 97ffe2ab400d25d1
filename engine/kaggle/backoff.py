"""How long to wait before Kaggle is asked again: twice as long each time, and never shorter than it wants."""

from __future__ import annotations

import random

FIRST_WAIT, LONGEST_WAIT = 1.0, 600.0
LONGEST_ASKED = 86_400.0
"""Kaggle is not believed when it wants to be left alone for longer."""

USUAL_PATIENCE = 300.0
"""For how many seconds Kaggle is waited for where nobody says otherwise; the engine's queue waits in its own way."""

_SPREAD = 1.25  # clients that failed together shall not come back together


def wait_seconds(failures: int, asked: float | None = None) -> float:
    """How long to wait after so many failures in a row, with some chance in it; `asked` is what Kaggle wants."""
    doubled = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 30))
    return max(doubled, asked or 0.0) * random.uniform(1.0, _SPREAD)  # noqa: S311 - it spreads requests


def is_due(retry_at: float | None, now: float) -> bool:
    """Whether the time of another try has come; None: it has."""
    # One that lies further ahead than any wait comes of a clock that was set back.
    return retry_at is None or not now < retry_at <= now + LONGEST_ASKED * _SPREAD
