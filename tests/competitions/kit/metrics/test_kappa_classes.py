"""Weighted kappa over a fixed scale and over the grades that occur."""

import numpy as np
import pytest

from mlebench_console.competitions.kit import metrics


def test_a_grade_that_never_occurs_leaves_a_gap_only_on_a_fixed_scale() -> None:
    truth, predicted = np.array([0, 1, 4, 4]), np.array([0, 1, 4, 1])
    assert metrics.quadratic_weighted_kappa(truth, predicted) == pytest.approx(0.8)
    fixed = metrics.quadratic_weighted_kappa(truth, predicted, classes=range(5))
    assert fixed == pytest.approx(0.625)
