"""Pair predicted objects with true ones within groups, such as an image and class; scores are in `metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
Pairs = tuple[Positions, Positions]

_BLOCK = 1 << 22  # pairs at a time: bounds the memory that a group of very many objects takes


def codes(*sides: tuple[npt.NDArray[Any], ...]) -> list[Positions]:
    """Number groups that are given by several keys, with the same number on all sides for equal keys.

    Each side is a tuple of arrays of equal length, such as the image and the class of each object.
    """
    import pandas as pd

    combined: npt.NDArray[np.int64] | None = None
    for key in zip(*sides, strict=True):
        part, names = pd.factorize(np.concatenate(key))
        # Renumbered after each key, so that products stay far below 64 bits.
        combined = (
            part.astype(np.int64)
            if combined is None
            else pd.factorize(combined * max(len(names), 1) + part)[0]
        )
    assert combined is not None  # there is at least one key
    edges = np.cumsum([len(side[0]) for side in sides])[:-1]
    return [np.asarray(part, dtype=np.intp) for part in np.split(combined, edges)]


def ranked(group: Positions, confidence: Numbers) -> Positions:
    """Return positions by group, within it by descending confidence, equal ones in their order, NaN last."""
    return np.lexsort((-confidence, group))


def ranks(group: Positions) -> Positions:
    """Return each member's index within its group, from 0; groups must be contiguous."""
    firsts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if len(group) else group
    return np.arange(len(group)) - np.repeat(firsts, np.diff(np.append(firsts, len(group))))


def pairs(first: Positions, second: Positions) -> Iterator[Pairs]:
    """Yield all pairs of members of `first` and `second` in the same group, as positions, in blocks.

    They are ordered by position in `first`, then by position in `second`; all pairs of one member of
    `first` are in the same block.
    """
    by_group = np.argsort(second, kind="stable")
    starts = np.searchsorted(second[by_group], first, side="left")
    counts = np.searchsorted(second[by_group], first, side="right") - starts
    before = np.concatenate([[0], np.cumsum(counts)])
    low = 0
    while low < len(first):
        high = max(int(np.searchsorted(before, before[low] + _BLOCK, side="right")) - 1, low + 1)
        left = np.repeat(np.arange(low, high), counts[low:high])
        inside = np.arange(before[low], before[high]) - before[left]
        yield left, by_group[starts[left] + inside]
        low = high


def greedy(wanted: Iterable[Pairs], firsts: int, seconds: int) -> Positions:
    """Return for each member of the first side its partner on the second one, or -1.

    Pairs are accepted in the given order if both members are still free.
    """
    partner = np.full(firsts, -1, dtype=np.intp)
    taken = np.zeros(seconds, dtype=bool)
    for first, second in wanted:
        free = ~taken[second]
        first, second = first[free], second[free]
        alone = (np.bincount(first, minlength=firsts)[first] == 1) & (
            np.bincount(second, minlength=seconds)[second] == 1
        )
        granted = [(first[alone], second[alone]), _contested(first[~alone], second[~alone])]
        for left, right in granted:
            partner[left] = right
            taken[right] = True
    return partner


def _contested(first: Positions, second: Positions) -> Pairs:
    given: dict[int, int] = {}
    taken: set[int] = set()
    for left, right in zip(first.tolist(), second.tolist(), strict=True):
        if left not in given and right not in taken:
            given[left] = right
            taken.add(right)
    return np.array(list(given.keys()), dtype=np.intp), np.array(list(given.values()), dtype=np.intp)


def overlapping(
    first: Positions,
    second: Positions,
    overlap: Callable[[Positions, Positions], Numbers],
    *,
    above: float,
    later_wins: bool = False,
) -> tuple[Positions, Positions, Numbers]:
    """Return the pairs of the same group that overlap by more than `above`, and their overlap, ordered for `greedy`.

    Each member of `first` prefers larger overlaps; of equal ones the first partner, or the last one with
    `later_wins`.

    Args:
        first: the group of each member of the first side.
        second: the group of each member of the second side.
        overlap: computes the overlaps of pairs, given as positions on both sides.
        above: what an overlap must exceed.
        later_wins: whether the last of equal partners comes first.
    """
    found: list[tuple[Positions, Positions, Numbers]] = []
    for left, right in pairs(first, second):
        size = overlap(left, right)
        near = size > above
        found.append((left[near], right[near], size[near]))
    left, right = (
        np.concatenate([np.empty(0, np.intp), *(block[side] for block in found)]) for side in (0, 1)
    )
    size = np.concatenate([np.empty(0), *(block[2] for block in found)])
    order = np.lexsort((-right if later_wins else right, -size, left))
    return left[order], right[order], size[order]
