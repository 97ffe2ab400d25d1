"""Boxes are hits as in PASCAL VOC: the best confident one first, each true box once, precision as an envelope."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from mlebench_console.competitions.kit.metrics import detection

Square = tuple[int, float]


def boxes(*squares: Square) -> detection.Boxes:
    """Squares of side 10 in one picture, each with its class and the left edge."""
    labels = np.array([label for label, _ in squares], dtype=np.intp)
    corners = np.array([(left, 0, left + 10, 10) for _, left in squares], dtype=np.float64)
    return detection.Boxes(labels, labels, corners.reshape(-1, 4))


def hits(found: detection.Boxes, truth: detection.Boxes) -> npt.NDArray[np.bool_]:
    return detection.hits(found, truth, above=0.5)


def test_each_true_box_is_hit_once_by_the_best_prediction() -> None:
    found = boxes((0, 1), (0, 0), (0, 101), (1, 100))
    assert hits(found, boxes((0, 0), (0, 100))).tolist() == [True, False, True, False]


def test_an_overlap_must_exceed_the_limit() -> None:
    # squares of side 10 that lie a third of their side apart share half of what both cover
    found, truth = boxes((0, 10 / 3)), boxes((0, 0))
    assert detection.hits(found, truth, above=0.49).tolist() == [True]
    assert detection.hits(found, truth, above=0.51).tolist() == [False]


def test_the_mean_is_over_the_true_classes_and_precision_is_the_best_at_higher_recall() -> None:
    truth = boxes((0, 0), (0, 100), (1, 200))
    found = boxes((0, 50), (0, 0), (1, 200), (0, 100))
    # class 0: a miss, then two hits, with precision 1/2 raised to 2/3
    assert detection.mean_precision(hits(found, truth), found, truth) == pytest.approx((2 / 3 + 1) / 2)


def test_nothing_found_scores_zero() -> None:
    truth = boxes((0, 0), (1, 50))
    assert detection.mean_precision(hits(boxes(), truth), boxes(), truth) == 0.0
