"""How long to wait before Kaggle is asked again: twice as long each time, and never shorter than it wants."""

from __future__ import annotations

import random

FIRST_WAIT, LONGEST_WAIT = 1.0, 600.0
USUAL_PATIENCE = 300.0
"""For how many seconds Kaggle is waited for where nobody says otherwise; the engine's queue waits in its own way."""

_LONGEST_ASKED = 86_400.0
_SPREAD = 1.25  # clients that failed together shall not come back together


def wait_seconds(failures: int, asked: float | None = None) -> float:
    """How long to wait after so many failures in a row, with some chance in it; `asked` is what Kaggle wants."""
    doubled = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 30))
    at_least = max(doubled, min(asked or 0.0, _LONGEST_ASKED))
    return at_least * random.uniform(1.0, _SPREAD)  # noqa: S311 - it spreads requests, it guards nothing
