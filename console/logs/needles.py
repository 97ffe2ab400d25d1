"""Finding a regular expression in large blocks of lines at nearly the speed of finding a word.

Python's expressions read some 20 to 200 MB a second. Most that a person types can't match without certain words;
those are found at the speed of memory, and only the lines that hold one are given to the expression. It knows no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from re import _constants as code  # type: ignore[attr-defined]  # the parser's own names; typeshed leaves them out
from re import _parser as parser  # type: ignore[attr-defined]  # likewise
from typing import Any

# Shorter words are in nearly every line, and more of them cost more than they spare.
_SHORTEST = 3
_MOST = 16
Words = frozenset[bytes]


class Needle:
    """A pattern to be found in blocks of whole lines; a match never goes beyond its line."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._words, self._folded = _words_of(pattern)

    def first(self, block: bytes) -> int | None:
        """Where the first match begins."""
        for start, end in self._candidates(block):
            found = self._pattern.search(block, start, end)
            if found is not None:
                return found.start()
        return None

    def last(self, block: bytes) -> int | None:
        """Where the last match begins."""
        for start, end in self._candidates_back(block):
            places = [found.start() for found in self._pattern.finditer(block, start, end)]
            if places:
                return places[-1]
        return None

    def count(self, block: bytes) -> int:
        """How many matches there are."""
        return sum(
            1 for start, end in self._candidates(block) for _ in self._pattern.finditer(block, start, end)
        )

    def _candidates(self, block: bytes) -> Iterator[tuple[int, int]]:
        """The lines that hold a word, or else everything at one go."""
        if not self._words:
            yield 0, len(block)
            return
        folded = block.lower() if self._folded else block
        places = {word: folded.find(word) for word in self._words}
        while any(place >= 0 for place in places.values()):
            place = min(place for place in places.values() if place >= 0)
            start, end = block.rfind(b"\n", 0, place) + 1, block.find(b"\n", place)
            end = len(block) if end < 0 else end
            yield start, end
            for word, at in places.items():
                if 0 <= at <= end:
                    places[word] = folded.find(word, end)

    def _candidates_back(self, block: bytes) -> Iterator[tuple[int, int]]:
        if not self._words:
            yield 0, len(block)
            return
        folded = block.lower() if self._folded else block
        places = {word: folded.rfind(word) for word in self._words}
        while (place := max(places.values())) >= 0:
            start, end = block.rfind(b"\n", 0, place) + 1, block.find(b"\n", place)
            yield start, len(block) if end < 0 else end
            for word, at in places.items():
                if at >= start:
                    places[word] = folded.rfind(word, 0, start)


@lru_cache(maxsize=32)
def needle_of(pattern: re.Pattern[bytes]) -> Needle:
    """The needle of a pattern, made once."""
    return Needle(pattern)


def _words_of(pattern: re.Pattern[bytes]) -> tuple[Words, bool]:
    """Words of which every match holds one, none where there are no such; and whether capitals don't matter."""
    parsed = parser.parse(pattern.pattern, pattern.flags)
    words = _needed(parsed)
    folded = bool(pattern.flags & re.IGNORECASE) or b"(?" in pattern.pattern
    if words is None or len(words) > _MOST or min(map(len, words)) < _SHORTEST:
        return frozenset(), folded
    words = frozenset(word.lower() for word in words) if folded else words
    # Where one word is, those that it is a part of need not be looked for.
    return frozenset(word for word in words if not any(o != word and o in word for o in words)), folded


def _needed(parsed: Iterable[tuple[Any, Any]]) -> Words | None:
    """Of everything in a sequence that must occur, what is rarest: that with the longest words."""
    found: list[Words] = []
    run = b""
    for does, what in parsed:
        if does is code.LITERAL and what < 256 and what != ord("\n"):
            run += bytes((what,))
            continue
        found += [frozenset((run,))] if run else []
        run = b""
        inner = _needed_inside(does, what)
        found += [inner] if inner else []
    found += [frozenset((run,))] if run else []
    return max(found, key=lambda words: (min(map(len, words)), -len(words)), default=None)


def _needed_inside(does: Any, what: Any) -> Words | None:
    if does is code.SUBPATTERN:
        return _needed(what[3])
    if does is code.ATOMIC_GROUP:
        return _needed(what)
    if does in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT) and what[0] > 0:
        return _needed(what[2])
    if does is code.BRANCH:
        each = [_needed(branch) for branch in what[1]]
        if all(words is not None for words in each):
            return frozenset(word for words in each if words is not None for word in words)
    return None
