"""Amounts of model calls are compared with each limit of a budget alone."""

from __future__ import annotations

import pytest

from mlebench_console.foundation.conditions import Amounts, Budget

USED = Amounts(3, 1_200, 0.5) + Amounts(1, 300, 0.75)


@pytest.mark.parametrize(
    ("budget", "exceeded"),
    [
        (Budget(), Budget()),
        (Budget(calls=4, tokens=1_500, usd=1.25), Budget()),
        (Budget(calls=3), Budget(calls=3)),
        (Budget(calls=9, tokens=1_499, usd=1.0), Budget(tokens=1_499, usd=1.0)),
        (Budget(usd=0), Budget(usd=0)),
    ],
)
def test_amounts_fit_within_a_budget_until_they_exceed_one_of_its_limits(
    budget: Budget, exceeded: Budget
) -> None:
    assert budget.exceeded_by(USED) == exceeded
    assert USED.fits(budget) is (exceeded == Budget())


@pytest.mark.parametrize(
    ("budget", "share"), [(Budget(), 0.0), (Budget(calls=8), 0.5), (Budget(calls=8, usd=1.0), 1.25)]
)
def test_the_used_share_is_that_of_the_unit_nearest_to_its_limit(budget: Budget, share: float) -> None:
    assert USED.share_of(budget) == share


def test_a_budget_is_changed_by_the_limits_that_are_given_and_zero_removes_one() -> None:
    assert Budget(calls=5, usd=2.0).changed_by(Budget(tokens=7, usd=0)) == Budget(calls=5, tokens=7)
    assert not Budget(calls=5).changed_by(Budget(calls=0)).is_limited


def test_a_budget_is_written_with_its_units_and_what_is_used_of_it() -> None:
    budget = Budget(calls=5, tokens=20_000, usd=0.5)
    assert budget.in_words() == "5 calls, 20,000 tokens, 0.5000 USD"
    assert budget.in_words(USED) == "4 of 5 calls, 1,500 of 20,000 tokens, 1.25 of 0.5000 USD"
    assert Budget().in_words() == "no limit"
