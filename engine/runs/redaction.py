"""Keeping secrets' values out of what is kept: the one place that log redaction will use as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MARK = "[secret]"
# Shorter values are words or numbers that stand in any text: taking them out would hide nothing.
_SHORTEST = 6


class Redaction:
    """Knows the values of the secrets that agents were given; holds them in memory alone."""

    def __init__(self) -> None:
        self._values: set[str] = set()

    def learn(self, names: Iterable[str], operator: Mapping[str, str]) -> None:
        """Remember the values of the operator's variables of these names."""
        self._values.update(value for name in names if len(value := operator.get(name, "")) >= _SHORTEST)

    def clean(self, text: str) -> str:
        """Put a mark where a secret stood."""
        for value in self._values:
            text = text.replace(value, MARK)
        return text
