"""Trying again what may pass: waiting longer each time, as long as Kaggle says where it says so."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from engine.kaggle.problems import KaggleTrouble, Passing

_LONGEST_ASKED = 900.0

Wait = Callable[[float, str], None]
"""Called with how long to wait and why; it may tell somebody, and raise to give up."""

Result = TypeVar("Result")


def sleep(seconds: float, why: str) -> None:
    """Wait without telling anybody."""
    del why
    time.sleep(seconds)


@dataclass(frozen=True)
class Patience:
    """How often to try, and how long to wait in between: doubling, with some chance in it."""

    tries: int = 8
    first_seconds: float = 1.0
    most_seconds: float = 60.0

    def delay(self, failures: int, asked: float | None = None) -> float:
        """How long to wait after so many failures in a row."""
        if asked is not None:
            return min(asked, _LONGEST_ASKED)
        longest: float = min(self.most_seconds, self.first_seconds * 2 ** (failures - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads requests, it guards nothing


def insist(
    call: Callable[[], Result], patience: Patience, *, wait: Wait = sleep, progressed: Callable[[], bool]
) -> Result:
    """Call until it succeeds; failures after which something had been gained do not count.

    Raises:
        KaggleTrouble: it failed too often in a row.
    """
    failures = 0
    while True:
        try:
            return call()
        except Passing as trouble:
            failures = 1 if progressed() else failures + 1
            if failures >= patience.tries:
                raise KaggleTrouble(
                    "Kaggle can't be reached", f"{trouble.why}, {failures} times in a row", "Try again later."
                ) from None
            wait(patience.delay(failures, trouble.retry_after), trouble.why)


def seconds_of(retry_after: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
