"""MLE-bench's metrics that more than one of its graders use."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt


def average_precision_at_k(actual: Set[Any], predicted: Sequence[Any], k: int) -> float:
    """Return the average precision of the first `k` predictions; a repeated one counts at its first place."""
    from mlebench_console.competitions.kit.metrics.ranking import map_at_k

    return map_at_k([actual], [predicted], k)


def mean_average_precision_at_k(
    actual: Sequence[Set[Any]], predicted: Sequence[Sequence[Any]], k: int
) -> np.float64:
    """Return the mean of the average precisions of the first `k` predictions."""
    pairs = zip(actual, predicted, strict=False)  # MLE-bench ends with the shorter one
    return np.float64(np.mean([average_precision_at_k(right, row, k) for right, row in pairs]))


def dice_coefficient(
    predicted_mask: npt.NDArray[Any], true_mask: npt.NDArray[Any], both_empty_value: float = np.nan
) -> float:
    """Return twice the overlap of two masks of 0 and 1, divided by the sum of both.

    Raises:
        AssertionError: their shapes differ.
    """
    shapes = predicted_mask.shape, true_mask.shape
    assert shapes[0] == shapes[1], (
        f"Predicted mask shape {shapes[0]} does not match true mask shape {shapes[1]}"
    )
    total = np.sum(predicted_mask) + np.sum(true_mask)
    if total == 0:
        return both_empty_value
    found: float = 2 * np.sum(predicted_mask * true_mask) / total
    return found
