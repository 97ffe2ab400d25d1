"""How the steps of a dataset tell how far they are."""

from __future__ import annotations

import time
from collections.abc import Callable

Tell = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and how much there is (0: unknown)."""

TellStep = Callable[[str, str, int, int], None]
"""The same, with the name of the step first."""

_EVERY_SECONDS = 0.2


def quiet(step: str, what: str, done: int, total: int) -> None:
    """Tell nobody."""
    del step, what, done, total


def seldom(tell: TellStep) -> TellStep:
    """Pass on what is new, but no more often than anybody looks."""
    last: tuple[str, int] = ("", 0)
    last_at = 0.0

    def passed_on(step: str, what: str, done: int, total: int) -> None:
        nonlocal last, last_at
        now = time.monotonic()
        # A total that has become known is always told: after it nothing may come for long.
        if (step, total) != last or now - last_at >= _EVERY_SECONDS or (total and done >= total):
            last, last_at = (step, total), now
            tell(step, what, done, total)

    return passed_on
