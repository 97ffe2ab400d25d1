"""Metrics that take a probability as a share of a claim."""

import numpy as np
import pytest

from mlebench_console.competitions.kit import metrics

TRUTH = np.array([1, 0, 1, 0])


def test_certain_claims_give_the_usual_f1() -> None:
    claims = np.array([1.0, 1.0, 0.0, 0.0])
    assert metrics.probabilistic_f1(TRUTH, claims) == pytest.approx(2 * 1 / (2 + 2))


def test_doubt_counts_in_part() -> None:
    claims = np.array([0.5, 0.25, 1.0, 0.25])
    precision, recall = 1.5 / 2, 1.5 / 2
    assert metrics.probabilistic_f1(TRUTH, claims) == pytest.approx(
        2 * precision * recall / (precision + recall)
    )


@pytest.mark.parametrize("claims", [[0.0] * 4, [0, 1.0, 0, 1.0]])
def test_no_right_claim_scores_zero(claims: list[float]) -> None:
    assert metrics.probabilistic_f1(TRUTH, np.array(claims)) == 0


def test_log_losses_charge_the_chance_given_to_the_other_side() -> None:
    losses = metrics.log_losses(TRUTH, np.array([0.9, 0.2, 0.0, 1.0]), clip=1e-15)
    assert losses[:2] == pytest.approx([-np.log(0.9), -np.log(0.8)])
    assert losses[2] == pytest.approx(-np.log(1e-15))
    assert losses[3] == pytest.approx(-np.log(1 - (1 - 1e-15)))
