"""Correlations agree with scipy, and overlaps of words with their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mlebench_console.competitions.kit.metrics import regression, texts


@pytest.mark.parametrize("seed", range(5))
def test_correlations_are_those_of_scipy(seed: int) -> None:
    from scipy import stats

    chance = np.random.default_rng(seed)
    truth = chance.integers(0, 5, 60) / 4
    predicted = np.round(truth + chance.normal(0, 1, 60), seed % 3)
    assert regression.pearson(truth, predicted) == pytest.approx(
        stats.pearsonr(truth, predicted).statistic, rel=1e-12
    )
    assert regression.spearman(truth, predicted) == pytest.approx(
        stats.spearmanr(truth, predicted).statistic, rel=1e-12
    )


@pytest.mark.parametrize("side", [[0.1] * 4, [1.0, 2.0, math.nan, 4.0], [1.0, 2.0, math.inf, 4.0], []])
def test_a_side_that_is_constant_or_not_finite_has_no_correlation(side: list[float]) -> None:
    values = np.array(side, dtype=np.float64)
    other = np.arange(len(values), dtype=np.float64)
    assert math.isnan(regression.pearson(values, other))
    assert math.isnan(regression.pearson(other, values))


def test_huge_values_do_not_overflow() -> None:
    values = np.array([1e308, -1e308, 5e307])
    assert regression.pearson(values, values) == pytest.approx(1.0)
    assert regression.pearson(values, -values) == pytest.approx(-1.0)


def test_equal_values_share_their_mean_rank() -> None:
    assert regression.average_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
    assert regression.average_ranks(np.array(["b", "a", "b"], dtype=object)).tolist() == [2.5, 1.0, 2.5]


def test_words_are_a_set_without_regard_to_case_and_blanks() -> None:
    found = texts.word_jaccard(["So so\u00a0Happy", "a b", "x", ""], ["happy SO", "b\tc", "", " "])
    assert found[:3].tolist() == [1.0, 1 / 3, 0.0]
    assert math.isnan(found[3])
