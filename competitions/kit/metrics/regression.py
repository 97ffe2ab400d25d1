"""Metrics over predicted quantities: mean errors and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def rmse(truth: Numbers, predicted: Numbers) -> float:
    """Return the root of the mean squared error."""
    with np.errstate(over="ignore"):  # the square of a huge error may overflow to infinity
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def rmsle(truth: Numbers, predicted: Numbers) -> float:
    """Return the root mean squared error of ln(1 + value); both sides must be above -1."""
    return rmse(np.log1p(truth), np.log1p(predicted))


def mean_absolute_error(truth: Numbers, predicted: Numbers) -> float:
    """Return the mean absolute error."""
    with np.errstate(over="ignore"):
        return float(np.mean(np.abs(predicted - truth)))


def mean_log_error(errors: Numbers, groups: npt.NDArray[np.intp], *, floor: float = 0.0) -> float:
    """Return the mean over groups of ln(mean absolute error of the group), each mean at least `floor`.

    Without a floor, a group without any error gives minus infinity.
    """
    means = np.bincount(groups, weights=errors) / np.bincount(groups)
    with np.errstate(divide="ignore"):
        return float(np.log(np.maximum(means, floor)).mean())


def laplace_log_likelihood(
    truth: Numbers, predicted: Numbers, deviation: Numbers, *, least_deviation: float, greatest_error: float
) -> float:
    """Return the mean of -sqrt(2) * error / deviation - ln(sqrt(2) * deviation), error and deviation clipped."""
    with np.errstate(
        over="ignore"
    ):  # a huge deviation may overflow, which makes the likelihood minus infinity
        spread = np.sqrt(2) * np.maximum(deviation, least_deviation)
        error = np.minimum(np.abs(truth - predicted), greatest_error)
        return float(np.mean(-2 * error / spread - np.log(spread)))


def pearson(truth: Numbers, predicted: Numbers) -> float:
    """Return Pearson's correlation; NaN when a side is constant or has a value that is not finite."""
    sides = [_centred(truth), _centred(predicted)]
    norms = [float(np.sqrt((side**2).sum())) for side in sides]
    if not all(norm > 0 for norm in norms):
        return float("nan")
    return float(np.clip((sides[0] / norms[0] * (sides[1] / norms[1])).sum(), -1.0, 1.0))


def _centred(values: Numbers) -> Numbers:
    # a constant side has no correlation; subtracting a rounded mean might leave a small one
    if len(values) == 0 or not np.isfinite(values).all() or (values == values[0]).all():
        return np.full(len(values), np.nan)
    scaled: Numbers = values / np.abs(values).max()  # squares of huge values would overflow
    centred: Numbers = scaled - scaled.mean()
    return centred


def average_ranks(values: npt.NDArray[Any]) -> Numbers:
    """Return ranks from 1 in ascending order, equal values sharing the mean of their ranks."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Numbers = (last - (counts - 1) / 2)[codes]
    return ranks


def spearman(truth: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float:
    """Return Spearman's correlation: Pearson's of the ranks; NaN when a side is constant.

    Either side may be numbers or text, without missing values.
    """
    return pearson(average_ranks(truth), average_ranks(predicted))
