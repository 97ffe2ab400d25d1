"""Reading a moment that a person types: a time of day, or how long into a run."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from foundation.problems import UsageProblem

_INTO = re.compile(r"\+(?:(?P<hours>\d+)[:h])?(?P<minutes>\d+)m?")
_CLOCK = re.compile(r"(?P<hours>\d{1,2}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}))?")
_DAY = 86400.0


@dataclass(frozen=True)
class Stretch:
    """From when to when something was printed."""

    begin: float
    end: float


def read_moment(text: str, known: Stretch) -> float:
    """The moment that is meant: `14:05` is the last such time of day before the end, `+2:30` is into the run.

    Raises:
        UsageProblem: it is neither.
    """
    text = text.strip()
    if found := _INTO.fullmatch(text):
        return known.begin + int(found["hours"] or 0) * 3600 + int(found["minutes"]) * 60
    if (found := _CLOCK.fullmatch(text)) and int(found["hours"]) < 24 and int(found["minutes"]) < 60:
        day = time.localtime(known.end)
        clock = (int(found["hours"]), int(found["minutes"]), int(found["seconds"] or 0))
        moment = time.mktime((day.tm_year, day.tm_mon, day.tm_mday, *clock, 0, 0, -1))
        return moment if moment <= known.end else moment - _DAY
    raise UsageProblem(f"'{text}' is no moment", "", "Type 14:05 for a time of day, or +2:30 into the run.")
