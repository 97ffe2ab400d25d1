"""Boxes in pictures rated as in PASCAL VOC: which are hits, and the mean average precision of their classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from competitions.kit.metrics import geometry, matching
from competitions.kit.metrics.detection import envelope_average_precision

Positions = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
Hits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Boxes:
    """Boxes of many pictures, the predicted ones best first.

    Attributes:
        group: the number of each box's picture and class; the same number on both sides for the same.
        label: the number of its class.
        box: its x_min, y_min, x_max and y_max.
    """

    group: Positions
    label: Positions
    box: Numbers


def hits(found: Boxes, truth: Boxes, *, above: float) -> Hits:
    """Which of the found boxes get a true box of their own, the best first choosing what they overlap most."""
    left, right, _ = matching.overlapping(
        found.group,
        truth.group,
        lambda left, right: geometry.box_iou(found.box[left], truth.box[right]),
        above=above,
    )
    return np.asarray(matching.greedy([(left, right)], len(found.group), len(truth.group)) >= 0)


def mean_precision(right: Hits, found: Boxes, truth: Boxes) -> float:
    """The mean over the classes from 0 to the last true one of the average precision."""
    by_label = np.argsort(found.label, kind="stable")
    positives = np.bincount(truth.label)
    return float(envelope_average_precision(right[by_label], found.label[by_label], positives).mean())
