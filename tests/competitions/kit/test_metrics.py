"""The kit's metrics agree with scikit-learn where both are defined, and say NaN where nothing is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit import metrics

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_auc_counts_ties_half(levels: int) -> None:
    from sklearn.metrics import roc_auc_score

    truth = RANDOM.integers(0, 2, 500)
    scores = RANDOM.integers(0, levels, 500) / levels
    assert metrics.roc_auc(truth, scores) == pytest.approx(roc_auc_score(truth, scores), rel=1e-12)


def test_auc_without_ties_is_exact() -> None:
    from sklearn.metrics import roc_auc_score

    truth, scores = RANDOM.integers(0, 2, 999), RANDOM.random(999)
    assert metrics.roc_auc(truth, scores) == pytest.approx(roc_auc_score(truth, scores), rel=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=12))
def test_auc_is_the_share_of_pairs_won(rows: list[tuple[bool, int]]) -> None:
    pairs = [
        (mine > other) + 0.5 * (mine == other)
        for is_positive, mine in rows
        if is_positive
        for other_positive, other in rows
        if not other_positive
    ]
    found = metrics.roc_auc(np.array([row[0] for row in rows]), np.array([float(row[1]) for row in rows]))
    if pairs:
        assert found == pytest.approx(sum(pairs) / len(pairs))
    else:
        assert math.isnan(found)


def test_column_auc_is_the_plain_mean() -> None:
    truth = np.array([[0, 1], [1, 0]])
    scores = np.array([[0.1, 0.2], [0.9, 0.8]])
    assert metrics.mean_column_auc(truth, scores) == 0.5


def test_log_loss_clips_at_the_machine_epsilon() -> None:
    certain = np.array([[1.0, 0.0]])
    assert metrics.log_loss(np.array([0]), certain) == 2.220446049250313e-16
    assert metrics.log_loss(np.array([1]), certain) == pytest.approx(36.04365338911715)
    assert metrics.log_loss(np.array([1]), certain, clip=1e-15) == pytest.approx(-math.log(1e-15))


def test_log_loss_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import log_loss

    given_probabilities = RANDOM.dirichlet(np.ones(4), 50)
    truth = RANDOM.integers(0, 4, 50)
    expected = log_loss(truth, given_probabilities, labels=[0, 1, 2, 3])
    assert metrics.log_loss(truth, given_probabilities) == pytest.approx(expected, rel=1e-12)


def test_f1_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import f1_score

    truth, predicted = RANDOM.integers(0, 6, 200), RANDOM.integers(2, 9, 200)
    expected = f1_score(truth, predicted, average="macro", zero_division=0)
    assert metrics.macro_f1(truth, predicted) == pytest.approx(expected, rel=1e-12)


def test_kappa_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import cohen_kappa_score

    truth, predicted = RANDOM.integers(0, 5, 200), RANDOM.integers(0, 5, 200)
    expected = cohen_kappa_score(truth, predicted, weights="quadratic")
    assert metrics.quadratic_weighted_kappa(truth, predicted) == pytest.approx(expected, rel=1e-12)


def test_kappa_of_one_single_class_is_undefined() -> None:
    assert math.isnan(metrics.quadratic_weighted_kappa(np.array([3, 3]), np.array([3, 3])))


def test_errors_of_quantities() -> None:
    truth, predicted = np.array([0.0, 3.0]), np.array([4.0, 0.0])
    assert metrics.rmse(truth, predicted) == pytest.approx(math.sqrt(12.5))
    assert metrics.mean_absolute_error(truth, predicted) == 3.5
    logs = [math.log(5) ** 2, math.log(4) ** 2]
    assert metrics.rmsle(truth, predicted) == pytest.approx(math.sqrt(sum(logs) / 2))


def test_accuracy_is_the_share_of_equal_labels() -> None:
    assert metrics.accuracy(np.array([1, 0, 1, 1]), np.array([1, 0, 0, 1])) == 0.75


@pytest.mark.parametrize(
    ("right", "guesses", "expected"),
    [
        ({"a"}, ["a", "b"], 1.0),
        ({"a"}, ["b", "a"], 0.5),
        ({"a"}, ["b", "c", "a"], 0.0),
        ({"a", "b"}, ["a", "x"], 0.5),
        ({"a"}, ["a", "a"], 1.0),
        ({"a"}, [], 0.0),
        (set(), ["a"], 0.0),
    ],
)
def test_average_precision_of_the_first_two_guesses(
    right: set[str], guesses: list[str], expected: float
) -> None:
    assert metrics.map_at_k([right], [guesses], 2) == expected
