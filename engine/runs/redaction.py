"""Keeping secrets' values out of the engine's log and its evidence; agents' logs are clean from the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from environment.redaction import MARK, worth_hiding


class Redaction:
    """Knows the values of the secrets that agents were given; holds them in memory alone."""

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()

    def learn(self, names: Iterable[str], operator: Mapping[str, str]) -> None:
        """Remember the values of the operator's variables of these names."""
        self._values = worth_hiding((*self._values, *(operator.get(name, "") for name in names)))

    def clean(self, text: str) -> str:
        """Put a mark where a secret stood."""
        for value in self._values:
            text = text.replace(value, MARK)
        return text
