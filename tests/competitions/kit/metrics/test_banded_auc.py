"""Area under the ROC curve with weighted bands."""

import math

import numpy as np
import pytest

from mlebench_console.competitions.kit import metrics


def score(truth: list[int], scores: list[float]) -> float:
    return metrics.banded_auc(np.array(truth), np.array(scores), edges=(0, 0.4, 1), weights=(2, 1))


def test_a_perfect_order_scores_one_and_the_reverse_zero() -> None:
    assert score([0, 1, 0, 1], [0.1, 0.8, 0.2, 0.9]) == 1
    assert score([1, 0, 1, 0], [0.1, 0.8, 0.2, 0.9]) == 0


def test_a_constant_gives_the_area_under_the_diagonal() -> None:
    # below 0.4: 0.08 + 0.4 * 0.6; above: 0.6 * 0.6 / 2
    assert score([0, 1, 1, 0], [0.5] * 4) == pytest.approx((2 * 0.32 + 0.18) / 1.4)


def test_equal_weights_give_the_plain_area() -> None:
    rng = np.random.default_rng(3)
    truth, scores = rng.integers(0, 2, 200), rng.integers(0, 20, 200).astype(float)
    banded = metrics.banded_auc(truth, scores, edges=(0, 0.3, 0.7, 1), weights=(1, 1, 1))
    assert banded == pytest.approx(metrics.roc_auc(truth, scores))


def test_a_rate_that_falls_on_the_edge_is_counted_once() -> None:
    # five positives: the curve rests at 0.4 while all negatives pass
    assert score([1, 1, 0, 0, 1, 1, 1], [7, 6, 5, 4, 3, 2, 1]) == pytest.approx(2 * 0.4 / 1.4)


def test_one_class_has_no_area() -> None:
    assert math.isnan(score([1, 1], [0.1, 0.2]))
