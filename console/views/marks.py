"""What is marked in a list, whatever it is a list of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


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

    def turned(self, key: Key) -> Marks[Key]:
        """One more, or one less if it was marked."""
        return Marks(self.keys ^ {key}, key)

    def adding(self, keys: Iterable[Key]) -> Marks[Key]:
        """These too."""
        return replace(self, keys=self.keys.union(keys))

    def all_turned(self, keys: Iterable[Key]) -> Marks[Key]:
        """These too, or without them if all of them were marked."""
        found = frozenset(keys)
        return replace(self, keys=self.keys - found if found <= self.keys else self.keys | found)

    def among(self, known: Iterable[Key]) -> Marks[Key]:
        """Without those that are no longer there."""
        return replace(self, keys=self.keys.intersection(known))
