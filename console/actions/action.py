"""An action as data: its requests to the engine, and the question that is asked before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlebench_console.foundation.problems import UsageProblem


class NotApplicable(UsageProblem):
    """The action applies to nothing of what was chosen."""


if TYPE_CHECKING:  # the first frame needs no request
    from mlebench_console.engine.requests import Request


@dataclass(frozen=True)
class Affected:
    """A group of things that an action changes, with the consequences.

    Attributes:
        heading: what they have in common; empty if the title says it.
        items: the name and description of each.
        note: what happens to them.
        is_warning: whether it is drawn as a warning.
    """

    heading: str = ""
    items: tuple[tuple[str, str], ...] = ()
    note: str = ""
    is_warning: bool = False

    def in_words(self) -> str:
        """Return all of it as one paragraph."""
        items = ", ".join(f"{name} {known}" for name, known in self.items)
        listed = ": ".join(text for text in (self.heading, items) if text)
        return ". ".join(text for text in (listed, self.note) if text)


@dataclass(frozen=True)
class Question:
    """The question asked before an action; the default answer is no."""

    title: str
    yes: str
    affected: tuple[Affected, ...]

    @property
    def warns(self) -> bool:
        """Return whether any part of it is a warning."""
        return any(part.is_warning for part in self.affected)


@dataclass(frozen=True)
class Action:
    """Requests to the engine, filed in order after the question, if there is one, is answered with yes.

    Attributes:
        free_part: the same for those things alone for which it is free; its question has the answer's words.
    """

    requests: tuple[Request, ...]
    question: Question | None = None
    free_part: Action | None = None


def applies(make: Callable[[Any], object], chosen: Any) -> bool:
    """Return whether an action applies to any of what was chosen."""
    try:
        make(chosen)
    except NotApplicable:
        return False
    return True
