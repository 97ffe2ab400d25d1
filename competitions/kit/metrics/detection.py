"""Average precision over ranked detections, in the three forms that benchmarks use; matching is `kit.matching`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Hits = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]

RECALL_LEVELS = np.linspace(0.0, 1.0, 101)


def envelope_average_precision(hits: Hits, group: Positions, positives: npt.NDArray[Any]) -> Numbers:
    """Per group the area under the precision-recall steps, precision raised to the best at any higher recall.

    This is PASCAL VOC's of 2010. A group without any hit, or without any true object, has 0.

    Args:
        hits: whether each detection is right; groups stand together, best detection first.
        group: the number of each detection's group.
        positives: how many true objects each group has.
    """
    precision, right = _precision(hits, group)
    # Precision peaks at hits, so the others cannot raise it.
    envelope = _best_from_here_on(precision[right], group[right])
    totals = np.bincount(group[right], weights=envelope, minlength=len(positives))
    return np.asarray(totals / np.maximum(positives, 1), dtype=np.float64)


def _precision(hits: Hits, group: Positions) -> tuple[Numbers, Positions]:
    size = len(hits)
    if not size:
        return np.empty(0), np.empty(0, dtype=np.intp)
    firsts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    lengths = np.diff(np.append(firsts, size))
    found = np.cumsum(hits)
    found_before: npt.NDArray[Any] = np.repeat(found[firsts] - hits[firsts], lengths)
    place = np.arange(size) - np.repeat(firsts, lengths) + 1
    return (found - found_before) / place, np.flatnonzero(hits)


def _best_from_here_on(values: Numbers, group: Positions) -> Numbers:
    best = values.copy()
    step = 1
    while step < len(best):
        # after each round a value knows the best among the next 2 * step of its group
        same = group[step:] == group[:-step]
        if not same.any():
            break
        best[:-step] = np.where(same, np.maximum(best[:-step], best[step:]), best[:-step])
        step *= 2
    return best


def sampled_average_precision(hits: Hits, positives: int) -> float:
    """The mean over 101 recall levels of the best precision at that recall or higher, 0 where it is not reached.

    This is COCO's, for one class.
    """
    group = np.zeros(len(hits), dtype=np.intp)
    found = np.cumsum(hits)
    precision = found / (found + np.cumsum(~hits) + np.spacing(1))
    envelope = _best_from_here_on(precision, group)
    places = np.searchsorted(found / positives, RECALL_LEVELS, side="left")
    reached = places < len(hits)
    return float(np.where(reached, np.append(envelope, 0.0)[places], 0.0).mean())


def step_average_precision(truth: npt.NDArray[np.bool_], scores: Numbers) -> float:
    """The sum over distinct scores, descending, of the rise in recall times the precision there.

    This is scikit-learn's, without any envelope. There must be a true row.
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    found = np.cumsum(truth[order])[ends]
    rises = np.diff(found, prepend=0) / found[-1]
    return float((rises * found / (ends + 1)).sum())
