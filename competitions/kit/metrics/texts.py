"""Metrics over texts: words in common, Levenshtein distances."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def word_jaccard(truth: Sequence[str], predicted: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return per row the share of words in either text that are in both; NaN if neither has any.

    Words are separated by white space and compared in lower case; repeats count once.
    """
    return np.array([_overlap(*pair) for pair in zip(truth, predicted, strict=True)], dtype=np.float64)


def _overlap(truth: str, predicted: str) -> float:
    left, right = set(truth.lower().split()), set(predicted.lower().split())
    common = len(left & right)
    either = len(left) + len(right) - common
    return common / either if either else float("nan")


Counts = npt.NDArray[np.int64]

_THREADS = 4  # more would only count against the memory that a grader may take


def edit_distances(truth: Sequence[str], predicted: Sequence[str]) -> Counts:
    """Return per row the fewest insertions, deletions and substitutions of code points that make the texts equal."""
    # imported here, because few competitions need it
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} texts cannot be compared with {len(predicted)}, row by row.")
    if not truth:
        return np.zeros(0, dtype=np.int64)
    threads = min(_THREADS, os.cpu_count() or 1)
    return cpdist(truth, predicted, scorer=Levenshtein.distance, dtype=np.int64, workers=threads)


def sequence_distances(truth: Sequence[Sequence[int]], predicted: Sequence[Sequence[int]]) -> Counts:
    """Return edit distances as `edit_distances` does, for lists of numbers."""
    # one character per true number, and one for all others, since those never match
    characters = {number: chr(code) for code, number in enumerate({item for row in truth for item in row}, 1)}
    return edit_distances(
        *(
            ["".join(characters.get(number, "\0") for number in row) for row in side]
            for side in (truth, predicted)
        )
    )
