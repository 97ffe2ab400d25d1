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
    """Return the mean of -ln(probability of the true class), probabilities clipped to [clip, 1 - clip].

    Args:
        true_class: per row the column of the right class.
        probabilities: one row per row, one column per class.
        clip: keeps the loss of a certain but wrong prediction finite.
    """
    chosen = probabilities[np.arange(len(true_class)), true_class]
    return float(-np.log(np.clip(chosen, clip, 1 - clip)).mean())


def log_losses(
    truth: npt.NDArray[Any], probabilities: npt.NDArray[np.float64], *, clip: float = MACHINE_EPSILON
) -> npt.NDArray[np.float64]:
    """Return each row's -(y ln p + (1 - y) ln(1 - p)) for a truth of 0 and 1, p clipped to [clip, 1 - clip]."""
    clipped = np.clip(probabilities, clip, 1 - clip)
    losses: npt.NDArray[np.float64] = -np.log(np.where(truth == 1, clipped, 1 - clipped))
    return losses


def probabilistic_f1(truth: npt.NDArray[Any], probabilities: npt.NDArray[np.float64]) -> float:
    """Return F1 with each row's probability counted as a fractional positive; 0 without any true positive."""
    positive = truth == 1
    right, wrong = float(probabilities[positive].sum()), float(probabilities[~positive].sum())
    if not right > 0:
        return 0.0
    precision, recall = right / (right + wrong), right / int(positive.sum())
    return 2 * precision * recall / (precision + recall)


def divergences(
    truth: npt.NDArray[np.float64],
    probabilities: npt.NDArray[np.float64],
    *,
    clip: float | npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return each row's Kullback-Leibler divergence of the predicted shares from the true ones.

    Predictions are clipped to [clip, 1 - clip], each class to its own if there are several, and not rescaled. Classes
    with a true share of 0 and missing predictions add nothing; a predicted 0 that is not clipped makes it infinite.
    """
    clipped = np.clip(probabilities, clip, 1 - clip)
    logs = np.log(truth, out=np.zeros_like(truth), where=truth > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = truth * (logs - np.log(clipped))
    losses: npt.NDArray[np.float64] = np.nansum(terms, axis=1)
    return losses
