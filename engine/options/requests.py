"""Reading a request's arguments: what is missing, of the wrong kind or unknown is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from foundation.problems import Problem, UsageProblem


class Arguments:
    """The arguments of one request; `done` refuses those that nobody asked for."""

    def __init__(self, kind: str, values: Mapping[str, Any]) -> None:
        self._kind = kind
        self._left = dict(values)

    def text(self, name: str, default: str | None = None) -> str:
        """Take a text."""
        value = self._take(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Take a whole number."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "a whole number")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Take a number."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        return float(value)

    def optional_integer(self, name: str) -> int | None:
        """Take a whole number that may be absent or null."""
        if self._left.get(name) is None:
            self._left.pop(name, None)
            return None
        return self.integer(name)

    def optional_number(self, name: str) -> float | None:
        """Take a number that may be absent or null."""
        if self._left.get(name) is None:
            self._left.pop(name, None)
            return None
        return self.number(name)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Take a truth value."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Take a list of texts, with at least one in it unless there is a default."""
        value = self._take(name, None if default is None else list(default))
        if value == [] and default is not None:
            return default
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of texts")
        return tuple(dict.fromkeys(value))

    def integers(self, name: str) -> tuple[int, ...]:
        """Take a list of whole numbers with at least one in it."""
        value = self._take(name, None)
        whole = isinstance(value, list) and all(type(item) is int for item in value)
        if not whole or not value:
            raise self._wrong(name, "a list of whole numbers")
        return tuple(dict.fromkeys(value))

    def done(self) -> None:
        """Refuse what has not been taken."""
        if self._left:
            raise UsageProblem(f"{self._kind} has no argument '{sorted(self._left)[0]}'")

    def _take(self, name: str, default: Any) -> Any:
        if name in self._left:
            return self._left.pop(name)
        if default is None:
            raise UsageProblem(f"{self._kind} needs '{name}'")
        return default

    def _wrong(self, name: str, wanted: str) -> UsageProblem:
        return UsageProblem(f"'{name}' of {self._kind} is not {wanted}")


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
