"""The result of checking one precondition of some work, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mlebench_console.foundation.problems import Problem


class Mend(StrEnum):
    """What a console can do about something that is missing."""

    ENGINE = "engine"
    PREPARE = "prepare"
    BUILD = "build"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        good: whether the work can go on.
        next_step: what to do about it.
        mend: how a console can do that; None where it can't.
        subjects: the datasets or images that are missing.
        warns: whether a good check has a warning, because something is probably not intended.
    """

    good: bool
    text: str
    next_step: str = ""
    mend: Mend | None = None
    subjects: tuple[str, ...] = ()
    warns: bool = False


def failed(problem: Problem) -> Check:
    """Return a failed check for a problem."""
    return Check(False, problem.cause, problem.next_step)
