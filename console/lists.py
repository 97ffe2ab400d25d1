"""Sort order, marks and filters of lists, independent of what is listed."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

By = TypeVar("By", bound=str)
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class SortOrder(Generic[By]):
    """What a list is sorted by, and whether in reverse."""

    by: By
    reversed: bool = False

    def chosen(self, by: By) -> SortOrder[By]:
        """Return the order by another criterion, or for the same one the reverse order."""
        return self.reverse() if by == self.by else SortOrder(by)

    def reverse(self) -> SortOrder[By]:
        """Return the reverse order."""
        return replace(self, reversed=not self.reversed)


@dataclass(frozen=True)
class Marks(Generic[Key]):
    """The keys that are marked.

    Attributes:
        anchor: the key that was marked or unmarked last; ranges begin there.
    """

    keys: frozenset[Key] = frozenset()
    anchor: Key | None = None

    def __bool__(self) -> bool:
        """Whether anything is marked."""
        return bool(self.keys)

    def __contains__(self, key: Key) -> bool:
        """Whether a key is marked."""
        return key in self.keys

    def toggled(self, key: Key) -> Marks[Key]:
        """Return the marks with a key added, or removed if it was marked."""
        return Marks(self.keys ^ {key}, key)

    def added(self, keys: Iterable[Key]) -> Marks[Key]:
        """Return the marks with more keys."""
        return replace(self, keys=self.keys.union(keys))

    def all_toggled(self, keys: Iterable[Key]) -> Marks[Key]:
        """Return the marks with these keys added, or removed if all of them were marked."""
        found = frozenset(keys)
        return replace(self, keys=self.keys - found if found <= self.keys else self.keys | found)

    def restricted_to(self, known: Iterable[Key]) -> Marks[Key]:
        """Return the marks without keys that no longer exist."""
        return replace(self, keys=self.keys.intersection(known))


@dataclass(frozen=True)
class FilterTerm:
    """One word of a filter; `field` is empty for a free word."""

    field: str
    value: str
    is_negated: bool


def parse_terms(text: str, fields: Collection[str]) -> tuple[tuple[FilterTerm, ...], tuple[str, ...]]:
    """Parse a filter such as `state:failed !leaf`; return its terms, and the field names that don't exist.

    The beginning of a name is enough where no other field begins alike: `comp:` is `competition:`.
    """
    terms, unknown = [], []
    for word in text.split():
        is_negated = word.startswith("!")
        word = word.removeprefix("!").lower()
        name, colon, value = word.partition(":")
        if not word:
            continue
        if not colon:
            terms.append(FilterTerm("", word, is_negated))
            continue
        meant = [name] if name in fields else [field for field in fields if field.startswith(name)]
        if name and len(meant) == 1:
            terms.append(FilterTerm(meant[0], value, is_negated))
        else:
            unknown.append(name)
    return tuple(terms), tuple(unknown)


def words_accept(text: str, *shown: str) -> bool:
    """Return whether each word of a simple filter is in the texts shown, and each `!word` in none of them."""
    together = " ".join(shown).lower()
    return all(
        (word.removeprefix("!") in together) is not word.startswith("!") for word in text.lower().split()
    )
