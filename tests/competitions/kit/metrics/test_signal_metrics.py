"""Metrics of competitions of signals agree with scikit-learn, or with their formula written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mlebench_console.competitions.kit.metrics.classification import matthews_correlation
from mlebench_console.competitions.kit.metrics.probability import divergences
from mlebench_console.competitions.kit.metrics.ranking import label_ranking_precision
from mlebench_console.competitions.kit.metrics.regression import laplace_log_likelihood, mean_absolute_error

RNG = np.random.RandomState(0)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_matthews_correlation_agrees_with_scikit_learn(classes: int) -> None:
    from sklearn.metrics import matthews_corrcoef

    truth, predicted = RNG.randint(0, classes, (2, 500))
    predicted = np.where(RNG.rand(500) < 0.4, truth, predicted)
    assert matthews_correlation(truth, predicted) == pytest.approx(
        matthews_corrcoef(truth, predicted), rel=1e-12
    )


def test_matthews_correlation_at_its_ends() -> None:
    truth = np.array([0, 1, 1, 0])
    assert matthews_correlation(truth, truth) == 1
    assert matthews_correlation(truth, 1 - truth) == -1
    assert matthews_correlation(truth, np.zeros(4)) == 0


def test_counts_beyond_64_bits_do_no_harm() -> None:
    truth = np.arange(400_000) % 2
    predicted = np.where(np.arange(400_000) % 5 == 0, 1 - truth, truth)
    assert matthews_correlation(truth, predicted) == pytest.approx(0.6)


def test_label_ranking_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import label_ranking_average_precision_score

    truth = (RNG.rand(80, 9) < 0.2).astype(int)
    scores = RNG.randint(0, 5, (80, 9)) / 4
    held = truth.sum(axis=1) > 0
    expected = label_ranking_average_precision_score(
        truth[held], scores[held], sample_weight=truth[held].sum(axis=1)
    )
    assert label_ranking_precision(truth, scores) == pytest.approx(expected, rel=1e-12)


def test_label_ranking_without_any_label_is_undefined() -> None:
    assert math.isnan(label_ranking_precision(np.zeros((2, 3)), np.zeros((2, 3))))


def test_divergence_skips_what_is_not_true_and_what_is_missing() -> None:
    truth = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    given = np.array([[0.25, 0.25, 0.5], [0.0, 1.0, 0.0], [np.nan, 0.5, 0.0]])
    expected = [math.log(2), -math.log(1e-15), 0.0]
    assert divergences(truth, given, clip=1e-15).tolist() == pytest.approx(expected)


def test_likelihood_keeps_deviations_and_errors_from_extremes() -> None:
    truth, predicted = np.array([2000.0, 2000.0]), np.array([2100.0, np.inf])
    found = laplace_log_likelihood(
        truth, predicted, np.array([10.0, 200.0]), least_deviation=70, greatest_error=1000
    )
    root = math.sqrt(2)
    terms = [-root * 100 / 70 - math.log(root * 70), -root * 1000 / 200 - math.log(root * 200)]
    assert found == pytest.approx(sum(terms) / 2)


def test_errors_beyond_all_measure_are_infinite() -> None:
    assert mean_absolute_error(np.array([0.0, 0.0]), np.array([1.7e308, 1.7e308])) == math.inf


def test_a_deviation_beyond_all_measure_makes_the_worst_likelihood() -> None:
    one = np.array([2000.0])
    found = laplace_log_likelihood(one, one, np.array([1.7e308]), least_deviation=70, greatest_error=1000)
    assert found == -math.inf
