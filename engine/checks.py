"""The result of checking one precondition of some work, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mlebench_console.foundation.problems import Problem


class Health(StrEnum):
    """How something is: `warn` may not be intended or limits what can be done, `fail` prevents the work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Remedy(StrEnum):
    """What a console can do about something that is missing."""

    ENGINE = "engine"
    PREPARE = "prepare"
    BUILD = "build"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        next_step: what to do about it, or more lines about it, such as a traceback.
        remedy: what a console can do about it; None where it can do nothing.
        subjects: the datasets or images that are missing.
        name: what was checked, where the text does not say so.
    """

    health: Health
    text: str
    next_step: str = ""
    remedy: Remedy | None = None
    subjects: tuple[str, ...] = ()
    name: str = ""

    @property
    def allows_work(self) -> bool:
        """Whether the work can go on."""
        return self.health is not Health.FAIL

    @property
    def warns(self) -> bool:
        """Whether the work can go on, with a warning."""
        return self.health is Health.WARN

    def document(self) -> dict[str, Any]:
        """Return a check of preconditions as a JSON object."""
        return {
            "health": self.health,
            "good": self.allows_work,
            "warns": self.warns,
            "text": self.text,
            "next_step": self.next_step,
            "mend": self.remedy,
            "subjects": list(self.subjects),
        }


def failed(problem: Problem) -> Check:
    """Return a failed check for a problem."""
    return Check(Health.FAIL, problem.cause, problem.next_step)
