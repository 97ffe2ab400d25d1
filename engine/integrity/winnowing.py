"""Similarity of Python code by its tokens: fingerprints that survive renaming, reformatting and changed strings.

Names, strings and numbers count by their kind alone, comments and layout not at all. Of each window of hashes of
K tokens the smallest is kept (winnowing), so that any passage of K + WINDOW - 1 equal tokens is found.
The result is not Dolos' similarity, which parses and counts differently.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

# Shorter than Dolos' 23 and 17: reordered cells keep half of their fingerprints.
K = 12
WINDOW = 8
# Increased whenever the fingerprints of the same text change.
VERSION = 1

_MOST_TOKENS = 100_000
_MOST_FAULTS = 50
_BASE = np.uint64(0x9E3779B97F4A7C15)
_IGNORED = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER, tokenize.ERRORTOKEN),
    }
)
# Lines of a notebook that are not Python.
_COMMAND = re.compile(r"^\s*[%!?].*$|^.*get_ipython\(\).*$", re.MULTILINE)

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a text as numbers, and the line of each."""

    codes: Hashes
    lines: Positions

    @cached_property
    def grams(self) -> Hashes:
        """The hash of each K tokens in a row."""
        count = len(self.codes) - K + 1
        if count <= 0:
            return np.empty(0, np.uint64)
        total = np.zeros(count, np.uint64)
        for place in range(K):
            total = total * _BASE + self.codes[place : place + count]
        # Mixed, so that the smallest hashes are not those that begin with the smallest token.
        total ^= total >> np.uint64(31)
        total *= np.uint64(0xD6E8FEB86659FD93)
        return total ^ (total >> np.uint64(29))

    @cached_property
    def fingerprints(self) -> tuple[Hashes, Positions]:
        """The smallest hash of each window and its position, each position once."""
        grams = self.grams
        if len(grams) == 0:
            return grams, np.empty(0, np.int64)
        if len(grams) < WINDOW:
            place = int(np.argmin(grams))
            return grams[place : place + 1], np.array([place])
        windows = np.lib.stride_tricks.sliding_window_view(grams[::-1], WINDOW)
        # The rightmost of equal hashes, so that a run of the same token has few fingerprints.
        places = len(grams) - 1 - (np.arange(len(windows)) + np.argmin(windows, axis=1))
        kept = np.unique(places)
        return grams[kept], kept


def tokens_of(text: str) -> Tokens:
    """Read the tokens of Python code; after an error, continue with the next line."""
    codes: list[int] = []
    lines: list[int] = []
    source = _COMMAND.sub("", text).split("\n")
    start = faults = 0
    while start < len(source) and faults <= _MOST_FAULTS:
        stream = io.StringIO("\n".join(source[start:]))
        reached = 0
        try:
            for token in tokenize.generate_tokens(stream.readline):
                reached = max(reached, token.start[0])
                if token.type not in _IGNORED:
                    codes.append(_code(token.type, token.string))
                    lines.append(start + token.start[0])
                if len(codes) >= _MOST_TOKENS:
                    break
            break
        except (tokenize.TokenError, SyntaxError, ValueError):
            faults += 1
            start += max(reached, 1)
    return Tokens(np.array(codes, np.uint64), np.array(lines, np.int64))


def _code(kind: int, text: str) -> int:
    if kind == tokenize.NAME:
        if not keyword.iskeyword(text):
            return 1
    elif kind == tokenize.NUMBER:
        return 2
    elif kind == tokenize.STRING:
        return 3
    # A number for each keyword or operator; hash() differs between processes.
    return 4 + int.from_bytes(text.encode("utf-8", "replace")[:6])


@dataclass(frozen=True)
class Likeness:
    """How similar two sets of fingerprints are.

    Attributes:
        similarity: twice the number of shared fingerprints, divided by the sum of both sizes.
        containment: the number of shared fingerprints, divided by the smaller size.
        tokens: how many tokens of the left text the shared fingerprints cover.
    """

    similarity: float
    containment: float
    tokens: int


def covered(places: Positions) -> int:
    """Count the tokens covered by the K tokens from each of these positions."""
    if len(places) == 0:
        return 0
    ordered = np.sort(places)
    return int(np.minimum(np.diff(ordered), K).sum()) + K


def likeness(left: Tokens, right: Tokens, dropped: Hashes | None = None) -> Likeness:
    """Compare two texts, without the `dropped` fingerprints, which many texts share."""
    left_hashes, left_places = left.fingerprints
    right_hashes = right.fingerprints[0]
    if dropped is not None and len(dropped):
        keep = ~is_in(left_hashes, dropped)
        left_hashes, left_places = left_hashes[keep], left_places[keep]
        right_hashes = right_hashes[~is_in(right_hashes, dropped)]
    mine, theirs = np.unique(left_hashes), np.unique(right_hashes)
    shared = np.intersect1d(mine, theirs, assume_unique=True)
    if len(shared) == 0:
        return Likeness(0.0, 0.0, 0)
    return Likeness(
        2 * len(shared) / (len(mine) + len(theirs)),
        len(shared) / min(len(mine), len(theirs)),
        covered(left_places[is_in(left_hashes, shared)]),
    )


def is_in(values: Hashes, ordered: Hashes) -> npt.NDArray[np.bool_]:
    """Return which values are in `ordered`, a sorted array without duplicates."""
    if len(ordered) == 0:
        return np.zeros(len(values), bool)
    places = np.searchsorted(ordered, values)
    found: npt.NDArray[np.bool_] = ordered[np.minimum(places, len(ordered) - 1)] == values
    return found


def longest_passage(left: Tokens, right: Tokens) -> tuple[int, tuple[int, int], tuple[int, int]] | None:
    """Return the length of the longest common run of tokens, and its first and last line on each side.

    None where no K consecutive tokens are equal.
    """
    places: dict[int, list[int]] = {}
    for place, value in enumerate(right.grams.tolist()):
        found = places.setdefault(value, [])
        if len(found) < 20:  # so that a table of a thousand equal lines does not take a million steps
            found.append(place)
    best, best_left, best_right = 0, 0, 0
    runs: dict[int, int] = {}
    for place, value in enumerate(left.grams.tolist()):
        current: dict[int, int] = {}
        for other in places.get(value, ()):
            length = runs.get(other - 1, 0) + 1
            current[other] = length
            if length > best:
                best, best_left, best_right = length, place, other
        runs = current
    if not best:
        return None
    first_left, first_right, count = best_left - best + 1, best_right - best + 1, best + K - 1
    return count, _lines(left.lines, first_left, count), _lines(right.lines, first_right, count)


def _lines(lines: Positions, first: int, count: int) -> tuple[int, int]:
    return int(lines[first]), int(lines[first + count - 1])


def joined(parts: Sequence[Tokens]) -> Tokens:
    """Join one text or several to one; its line numbers are those of the single texts."""
    return Tokens(
        np.concatenate([part.codes for part in parts]), np.concatenate([part.lines for part in parts])
    )
