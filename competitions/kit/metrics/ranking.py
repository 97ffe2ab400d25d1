"""Metrics over the order of scores: area under the ROC curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def roc_auc(truth: npt.NDArray[Any], scores: npt.NDArray[np.float64]) -> float:
    """The chance that a random positive row is scored above a random negative one, ties counting half.

    NaN when the truth holds one class only.
    """
    positive = np.asarray(truth) == 1
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return float("nan")
    order = np.argsort(scores)
    ranked, hits = scores[order], positive[order]
    ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    positives_to = np.cumsum(hits)[ends]
    negatives_to = ends + 1 - positives_to
    # below: negatives before the tie in which a positive stands, and half of those inside it
    inside = np.diff(negatives_to, prepend=0)
    below = negatives_to - inside + inside / 2
    won = float((np.diff(positives_to, prepend=0) * below).sum())
    return won / (positives * negatives)


def mean_column_auc(truth: npt.NDArray[Any], scores: npt.NDArray[np.float64]) -> float:
    """The plain mean of each column's area under the ROC curve."""
    return float(np.mean([roc_auc(truth[:, column], scores[:, column]) for column in range(truth.shape[1])]))
