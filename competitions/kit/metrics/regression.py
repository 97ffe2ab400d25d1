"""Metrics over predicted quantities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def rmse(truth: Numbers, predicted: Numbers) -> float:
    """The root of the mean squared error."""
    with np.errstate(over="ignore"):  # a prediction beyond all measure has an infinite error
        return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def rmsle(truth: Numbers, predicted: Numbers) -> float:
    """The root mean squared error of ln(1 + value); both sides must be above -1."""
    return rmse(np.log1p(truth), np.log1p(predicted))


def mean_absolute_error(truth: Numbers, predicted: Numbers) -> float:
    """The mean absolute error."""
    with np.errstate(over="ignore"):
        return float(np.mean(np.abs(predicted - truth)))


def mean_log_error(errors: Numbers, groups: npt.NDArray[np.intp], *, floor: float = 0.0) -> float:
    """The mean over groups of ln(mean absolute error of the group), each at least `floor`.

    Without a floor a group without any error makes it minus infinity.
    """
    means = np.bincount(groups, weights=errors) / np.bincount(groups)
    with np.errstate(divide="ignore"):
        return float(np.log(np.maximum(means, floor)).mean())


def laplace_log_likelihood(
    truth: Numbers, predicted: Numbers, deviation: Numbers, *, least_deviation: float, greatest_error: float
) -> float:
    """The mean of -sqrt(2) * error / deviation - ln(sqrt(2) * deviation), both kept from becoming extreme."""
    with np.errstate(over="ignore"):  # a deviation beyond all measure makes the likelihood minus infinity
        spread = np.sqrt(2) * np.maximum(deviation, least_deviation)
        error = np.minimum(np.abs(truth - predicted), greatest_error)
        return float(np.mean(-2 * error / spread - np.log(spread)))
