"""Whether the state can be read, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from foundation.problems import Problem


class Health(StrEnum):
    """Whether the state can be read."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Condition:
    """How the state is, and what is wrong with it."""

    health: Health = Health.UNKNOWN
    problem: Problem | None = None

    def tells_the_same(self, other: Condition) -> bool:
        """Whether a person would see a difference; problems are compared by their text."""
        return self.health is other.health and str(self.problem) == str(other.problem)
