"""Metrics over predicted classes: accuracy, mean F1, weighted kappa, Matthews correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Labels = npt.NDArray[Any]


def accuracy(truth: Labels, predicted: Labels) -> float:
    """Return the share of rows whose label is right."""
    return float(np.mean(truth == predicted))


def macro_f1(truth: Labels, predicted: Labels) -> float:
    """Return the unweighted mean F1 of every class in truth or prediction; a class never hit counts 0."""
    classes, codes = np.unique(np.concatenate([truth, predicted]), return_inverse=True)
    true_codes, predicted_codes = codes[: len(truth)], codes[len(truth) :]
    size = len(classes)
    support = np.bincount(true_codes, minlength=size)
    claimed = np.bincount(predicted_codes, minlength=size)
    hits = np.bincount(true_codes[true_codes == predicted_codes], minlength=size)
    return float((2.0 * hits / (support + claimed)).mean())  # every class occurs on a side, so never 0/0


def quadratic_weighted_kappa(
    truth: Labels, predicted: Labels, *, classes: Sequence[Any] | None = None
) -> float:
    """Return the agreement beyond chance of ordered classes, weighted by the squared distance of their ranks.

    Ranks are positions in `classes`, which are sorted and include every label. Without them they are
    positions among the classes that occur, as in scikit-learn: a class that never occurs leaves no
    gap. A single class on both sides gives NaN.
    """
    both = np.concatenate([truth, predicted])
    ordered = np.unique(both) if classes is None else np.asarray(classes)
    codes = np.searchsorted(ordered, both)
    size = len(ordered)
    observed = np.bincount(codes[: len(truth)] * size + codes[len(truth) :], minlength=size * size)
    observed = observed.reshape(size, size)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / len(truth)
    ranks = np.arange(size)
    weights = (ranks[:, None] - ranks[None, :]) ** 2
    disagreement = float((weights * expected).sum())
    return 1.0 - float((weights * observed).sum()) / disagreement if disagreement else float("nan")


def matthews_correlation(truth: Labels, predicted: Labels) -> float:
    """Return the correlation of true and predicted classes, any number of them; 0 if a side has only one class."""
    codes, classes = pd.factorize(np.concatenate([truth, predicted]))
    true_codes, predicted_codes = codes[: len(truth)], codes[len(truth) :]
    # Python integers, because products of four counts exceed 64 bits
    rows, hits = len(truth), int((true_codes == predicted_codes).sum())
    counts = [
        np.bincount(side, minlength=len(classes)).astype(object) for side in (true_codes, predicted_codes)
    ]
    covariance = hits * rows - int(counts[0] @ counts[1])
    spread = math.prod(rows * rows - int(side @ side) for side in counts)
    return covariance / math.sqrt(spread) if spread else 0.0
