"""The result of looking at one thing that work depends on, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from foundation.problems import Problem


class Mend(StrEnum):
    """What a console can do about something that is missing."""

    ENGINE = "engine"
    PREPARE = "prepare"
    BUILD = "build"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        good: whether it is right, or at least nothing that keeps the work back.
        next_step: what to do about it, where it is not right.
        mend: how a console can do that by itself; None where it can't.
        subjects: the datasets or images that are missing.
        warns: whether it lets something pass that is hardly meant so.
    """

    good: bool
    text: str
    next_step: str = ""
    mend: Mend | None = None
    subjects: tuple[str, ...] = ()
    warns: bool = False


def failed(problem: Problem) -> Check:
    """Make a failed check of a problem."""
    return Check(False, problem.cause, problem.next_step)
