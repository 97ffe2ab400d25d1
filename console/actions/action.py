"""An action as data: the requests to the engine, and the question that comes before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console import wording
from foundation.problems import UsageProblem


class NotApplicable(UsageProblem):
    """There is nothing among what was chosen that the action applies to."""


@dataclass(frozen=True)
class Request:
    """A change that the engine is asked for."""

    kind: str
    arguments: dict[str, Any]


# For how many seconds a console can take back what it has asked for, and how that is called meanwhile.
UNDO_SECONDS = 5.0
_CAN_BE_UNDONE = {"run.relaunch": "relaunching", "run.stop": "stopping", "sweep.stop": "stopping"}


def undone_as(kind: str, arguments: Mapping[str, Any]) -> str:
    """What a request that can be taken back is about to do, such as `stopping 3 runs`; empty for one that can't."""
    doing = _CAN_BE_UNDONE.get(kind, "")
    if not doing:
        return ""
    runs = arguments.get("runs")
    return f"{doing} {wording.plural(len(runs), 'run') if runs is not None else arguments['sweep_id']}"


@dataclass(frozen=True)
class Affected:
    """Some of what an action changes, and what that means.

    Attributes:
        heading: what these have in common; empty where the title says it.
        items: each by its name and what is known of it.
        note: what happens to them.
        is_warning: whether it should make somebody hesitate.
    """

    heading: str = ""
    items: tuple[tuple[str, str], ...] = ()
    note: str = ""
    is_warning: bool = False

    def in_words(self) -> str:
        """All of it in one paragraph."""
        items = ", ".join(f"{name} {known}" for name, known in self.items)
        listed = ": ".join(text for text in (self.heading, items) if text)
        return ". ".join(text for text in (listed, self.note) if text)


@dataclass(frozen=True)
class Question:
    """What a person is asked before an action; no is the default answer."""

    title: str
    yes: str
    affected: tuple[Affected, ...]

    @property
    def warns(self) -> bool:
        """Whether any part of it is a warning."""
        return any(part.is_warning for part in self.affected)


@dataclass(frozen=True)
class Action:
    """Requests to the engine, filed in order once the question, if there is one, is answered with yes."""

    requests: tuple[Request, ...]
    question: Question | None = None
