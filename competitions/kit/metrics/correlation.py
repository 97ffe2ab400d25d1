"""Metrics over how two columns of values go together: Pearson's and Spearman's correlation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def pearson(truth: Numbers, predicted: Numbers) -> float:
    """Pearson's correlation; NaN when a side is constant or holds a value that is not finite."""
    sides = [_centred(truth), _centred(predicted)]
    norms = [float(np.sqrt((side**2).sum())) for side in sides]
    if not all(norm > 0 for norm in norms):
        return float("nan")
    return float(np.clip((sides[0] / norms[0] * (sides[1] / norms[1])).sum(), -1.0, 1.0))


def _centred(values: Numbers) -> Numbers:
    # a constant side must become zeros, which subtracting a rounded mean does not guarantee
    if len(values) == 0 or not np.isfinite(values).all() or (values == values[0]).all():
        return np.full(len(values), np.nan)
    scaled: Numbers = values / np.abs(values).max()  # squares of huge values would overflow
    centred: Numbers = scaled - scaled.mean()
    return centred


def average_ranks(values: npt.NDArray[Any]) -> Numbers:
    """Ranks from 1 in ascending order, equal values sharing the mean of their ranks."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Numbers = (last - (counts - 1) / 2)[codes]
    return ranks


def spearman(truth: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """Spearman's correlation: Pearson's of the ranks; NaN when a side is constant.

    Either side may be numbers or text, without missing values.
    """
    return pearson(average_ranks(truth), average_ranks(predicted))
