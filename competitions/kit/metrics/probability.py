"""Metrics over predicted probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MACHINE_EPSILON = float(np.finfo(np.float64).eps)


def log_loss(
    true_class: npt.NDArray[np.integer[Any]],
    probabilities: npt.NDArray[np.float64],
    *,
    clip: float = MACHINE_EPSILON,
) -> float:
    """The mean of -ln(probability of the true class), probabilities clipped to [clip, 1 - clip].

    Args:
        true_class: per row the column of the right class.
        probabilities: one row per row, one column per class.
        clip: keeps a certain but wrong answer finite.
    """
    chosen = probabilities[np.arange(len(true_class)), true_class]
    return float(-np.log(np.clip(chosen, clip, 1 - clip)).mean())
