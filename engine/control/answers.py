"""What the engine answers to a request, and how an answer is kept as text in the state."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from foundation.problems import Problem, UsageProblem


@dataclass(frozen=True)
class Answer:
    """What became of a request that was done.

    Attributes:
        text: one sentence for people.
        sweep_id: the sweep that was launched or changed, where there is one.
    """

    text: str
    sweep_id: str | None = None

    def to_text(self) -> str:
        """Write the answer for keeping."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Answer:
        """Read back what `to_text` wrote."""
        return cls(**json.loads(text))


class RefusedRequest(UsageProblem):
    """The engine will not do what was asked, and says why."""

    @staticmethod
    def to_text(problem: Problem) -> str:
        """Write a refusal for keeping."""
        return json.dumps({"what": problem.what, "why": problem.why, "next_step": problem.next_step})

    @classmethod
    def from_text(cls, text: str) -> RefusedRequest:
        """Read back what `to_text` wrote."""
        return cls(**json.loads(text))
