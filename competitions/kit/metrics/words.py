"""Metrics over texts as sets of words; edits between texts are counted in `edits`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def word_jaccard(truth: Sequence[str], predicted: Sequence[str]) -> npt.NDArray[np.float64]:
    """Per row the words that both texts hold, as a share of those that either holds; NaN if neither has any.

    Words stand between any white space and are compared in lower case; repeats count once.
    """
    return np.array([_overlap(*pair) for pair in zip(truth, predicted, strict=True)], dtype=np.float64)


def _overlap(truth: str, predicted: str) -> float:
    left, right = set(truth.lower().split()), set(predicted.lower().split())
    common = len(left & right)
    either = len(left) + len(right) - common
    return common / either if either else float("nan")
