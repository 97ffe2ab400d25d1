"""Metrics over the order of scores or guesses: area under the ROC curve, mean average precision at k."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt


def roc_auc(truth: npt.NDArray[Any], scores: npt.NDArray[np.float64]) -> float:
    """Return the probability that a random positive row scores above a random negative one, ties counting half.

    NaN when the truth has only one class.
    """
    positive = np.asarray(truth) == 1
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return float("nan")
    order = np.argsort(scores)
    ranked, hits = scores[order], positive[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    if len(ends) == len(ranked):  # no ties: a positive beats the negatives before it
        won = int(np.flatnonzero(hits).sum()) - positives * (positives - 1) // 2
        return won / (positives * negatives)
    positives_to = np.cumsum(hits)[ends]
    negatives_to = ends + 1 - positives_to
    inside = np.diff(negatives_to, prepend=0)
    # negatives before the positive's tie, and half of those in it
    beaten = negatives_to - inside / 2
    return float((np.diff(positives_to, prepend=0) * beaten).sum()) / (positives * negatives)


def mean_column_auc(truth: npt.NDArray[Any], scores: npt.NDArray[np.float64]) -> float:
    """Return the unweighted mean of the columns' areas under the ROC curve."""
    return float(np.mean([roc_auc(truth[:, column], scores[:, column]) for column in range(truth.shape[1])]))


def banded_auc(
    truth: npt.NDArray[Any],
    scores: npt.NDArray[np.float64],
    *,
    edges: Sequence[float],
    weights: Sequence[float],
) -> float:
    """Return the area under the ROC curve with bands of the true positive rate weighted, scaled to at most 1.

    Band k lies between `edges[k]` and `edges[k + 1]`, and its area counts `weights[k]` times. NaN when
    the truth has only one class.
    """
    positive = np.asarray(truth) == 1
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return float("nan")
    order = np.argsort(-scores)
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    hits = np.cumsum(positive[order])[ends]
    true_rate = np.append(0.0, hits / positives)
    false_rate = np.append(0.0, (ends + 1 - hits) / negatives)
    # where a rising segment of the curve crosses an edge, it is cut by linear interpolation
    inner = np.asarray(edges[1:-1], dtype=np.float64)
    after = np.searchsorted(true_rate, inner)
    share = (inner - true_rate[after - 1]) / (true_rate[after] - true_rate[after - 1])
    crossing = false_rate[after - 1] + share * (false_rate[after] - false_rate[after - 1])
    true_rate, false_rate = np.insert(true_rate, after, inner), np.insert(false_rate, after, crossing)
    area = sum(
        weight * _area(false_rate, np.clip(true_rate, low, high) - low)
        for low, high, weight in zip(edges[:-1], edges[1:], weights, strict=True)
    )
    return area / float(np.dot(np.diff(edges), weights))


def label_ranking_precision(truth: npt.NDArray[Any], scores: npt.NDArray[np.float64]) -> float:
    """Return the mean over all true labels of all rows of the precision at the label's rank in its row.

    That is the share of true labels among the row's labels that score at least as high. Each true
    label has the same weight; rows without any add nothing. NaN when no row has a true label.
    """
    positive = np.asarray(truth) == 1
    rows, columns = np.nonzero(positive)
    if not len(rows):
        return float("nan")
    above = scores[rows] >= scores[rows, columns][:, None]
    return float(np.mean((above & positive[rows]).sum(axis=1) / above.sum(axis=1)))


def _area(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    return float((np.diff(x) * (y[1:] + y[:-1])).sum() / 2)


def map_at_k(truth: Sequence[Set[Any]], guesses: Sequence[Sequence[Any]], k: int) -> float:
    """Return the mean average precision of the first `k` guesses; a repeated guess counts once, at its first rank.

    Average precision divides by the number of right answers, at most `k`; a row without any counts 0.
    """
    return sum(map(lambda right, row: _average_precision(right, row, k), truth, guesses)) / len(truth)


def _average_precision(right: Set[Any], guesses: Sequence[Any], k: int) -> float:
    if right.isdisjoint(guesses[:k]):  # nearly every row of a hard task
        return 0.0
    hits = 0
    total = 0.0
    seen = set()
    for place, guess in enumerate(guesses[:k], start=1):
        if guess in right and guess not in seen:
            seen.add(guess)
            hits += 1
            total += hits / place
    return total / min(len(right), k)
