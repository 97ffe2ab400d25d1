"""What an operator has chosen in a list, whatever it is a list of: what sorts it, what is marked, what filters it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

By = TypeVar("By", bound=str)
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class SortOrder(Generic[By]):
    """By what a list is sorted, and whether the other way round."""

    by: By
    reversed: bool = False

    def chosen(self, by: By) -> SortOrder[By]:
        """Return the order by something else, or by the same thing the other way round."""
        return self.reverse() if by == self.by else SortOrder(by)

    def reverse(self) -> SortOrder[By]:
        """Return the order the other way round."""
        return replace(self, reversed=not self.reversed)


@dataclass(frozen=True)
class Marks(Generic[Key]):
    """The keys that are marked.

    Attributes:
        anchor: the one that was marked, or unmarked, last: where a range begins.
    """

    keys: frozenset[Key] = frozenset()
    anchor: Key | None = None

    def __bool__(self) -> bool:
        """Whether anything is marked."""
        return bool(self.keys)

    def __contains__(self, key: Key) -> bool:
        """Whether this is marked."""
        return key in self.keys

    def toggled(self, key: Key) -> Marks[Key]:
        """Return these with one more, or one less if it was marked."""
        return Marks(self.keys ^ {key}, key)

    def added(self, keys: Iterable[Key]) -> Marks[Key]:
        """Return these and others."""
        return replace(self, keys=self.keys.union(keys))

    def all_toggled(self, keys: Iterable[Key]) -> Marks[Key]:
        """Return these and others, or without the others if all of them were marked."""
        found = frozenset(keys)
        return replace(self, keys=self.keys - found if found <= self.keys else self.keys | found)

    def restricted_to(self, known: Iterable[Key]) -> Marks[Key]:
        """Return these without those that are no longer there."""
        return replace(self, keys=self.keys.intersection(known))


@dataclass(frozen=True)
class FilterTerm:
    """One word of a filter: a free word has no field."""

    field: str
    value: str
    is_negated: bool


def parse_terms(text: str, fields: Collection[str]) -> tuple[tuple[FilterTerm, ...], tuple[str, ...]]:
    """Read a filter such as `state:failed !leaf` as it is typed: its terms, and the fields that do not exist."""
    terms, unknown = [], []
    for word in text.split():
        is_negated = word.startswith("!")
        word = word.removeprefix("!").lower()
        name, colon, value = word.partition(":")
        if not word:
            continue
        if not colon:
            terms.append(FilterTerm("", word, is_negated))
        elif name in fields:
            terms.append(FilterTerm(name, value, is_negated))
        else:
            unknown.append(name)
    return tuple(terms), tuple(unknown)


def words_accept(text: str, *shown: str) -> bool:
    """Whether each word of a simple filter is in what is shown, `!word` in none of it."""
    together = " ".join(shown).lower()
    return all(
        (word.removeprefix("!") in together) is not word.startswith("!") for word in text.lower().split()
    )
