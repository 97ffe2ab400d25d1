"""Metrics over ranked guesses."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any


def map_at_k(truth: Sequence[Set[Any]], guesses: Sequence[Sequence[Any]], k: int) -> float:
    """Mean average precision of the first `k` guesses; a repeated guess counts once, at its first place.

    Average precision divides by the number of right answers, at most `k`; a row without any counts 0.
    """
    return sum(map(lambda right, row: _average_precision(right, row, k), truth, guesses)) / len(truth)


def _average_precision(right: Set[Any], guesses: Sequence[Any], k: int) -> float:
    if right.isdisjoint(guesses[:k]):  # nearly every row of a hard task, and told at once
        return 0.0
    hits = 0
    total = 0.0
    seen = set()
    for place, guess in enumerate(guesses[:k], start=1):
        if guess in right and guess not in seen:
            seen.add(guess)
            hits += 1
            total += hits / place
    return total / min(len(right), k)
