"""Average precision over ranked detections, in the variants that benchmarks use; pairing is in `matching`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mlebench_console.competitions.kit.metrics import geometry, matching

Numbers = npt.NDArray[np.float64]
Hits = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]

RECALL_LEVELS = np.linspace(0.0, 1.0, 101)


def envelope_average_precision(hits: Hits, group: Positions, positives: npt.NDArray[Any]) -> Numbers:
    """Return per group the area under the precision-recall steps, precision raised to the best at higher recall.

    This is PASCAL VOC's definition of 2010. A group without any hit, or without any true object, has 0.

    Args:
        hits: whether each detection is right; groups are contiguous, best detection first.
        group: the number of each detection's group.
        positives: how many true objects each group has.
    """
    precision, right = _precision(hits, group)
    # Precision peaks at hits, so other detections cannot raise it.
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
        # after each round a value is the best among the next 2 * step of its group
        same = group[step:] == group[:-step]
        if not same.any():
            break
        best[:-step] = np.where(same, np.maximum(best[:-step], best[step:]), best[:-step])
        step *= 2
    return best


def sampled_average_precision(hits: Hits, positives: int) -> float:
    """Return the mean over 101 recall levels of the best precision at that recall or higher, 0 if not reached.

    This is COCO's definition, for one class.
    """
    group = np.zeros(len(hits), dtype=np.intp)
    found = np.cumsum(hits)
    precision = found / (found + np.cumsum(~hits) + np.spacing(1))
    envelope = _best_from_here_on(precision, group)
    places = np.searchsorted(found / positives, RECALL_LEVELS, side="left")
    reached = places < len(hits)
    return float(np.where(reached, np.append(envelope, 0.0)[places], 0.0).mean())


def step_average_precision(truth: npt.NDArray[np.bool_], scores: Numbers) -> float:
    """Return the sum over distinct scores, descending, of the rise in recall times the precision there.

    This is scikit-learn's definition, without an envelope. At least one row must be true.
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    found = np.cumsum(truth[order])[ends]
    rises = np.diff(found, prepend=0) / found[-1]
    return float((rises * found / (ends + 1)).sum())


@dataclass(frozen=True)
class Boxes:
    """Boxes of many images, the predicted ones best first.

    Attributes:
        group: the number of each box's image and class, shared by predicted and true boxes.
        label: the number of its class.
        box: its x_min, y_min, x_max and y_max.
    """

    group: Positions
    label: Positions
    box: Numbers


def hits(found: Boxes, truth: Boxes, *, above: float) -> Hits:
    """Return which predicted boxes get a true box of their own: best first, each takes the one it overlaps most."""
    left, right, _ = matching.overlapping(
        found.group,
        truth.group,
        lambda left, right: geometry.box_iou(found.box[left], truth.box[right]),
        above=above,
    )
    return np.asarray(matching.greedy([(left, right)], len(found.group), len(truth.group)) >= 0)


def mean_precision(right: Hits, found: Boxes, truth: Boxes) -> float:
    """Return the mean average precision over the classes from 0 to the last true one."""
    by_label = np.argsort(found.label, kind="stable")
    positives = np.bincount(truth.label)
    return float(envelope_average_precision(right[by_label], found.label[by_label], positives).mean())
