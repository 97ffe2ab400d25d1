"""Budgets of model calls hold, also for calls at once and after a gateway has died."""

from __future__ import annotations

from pathlib import Path

import pytest

from environment.gateway.budget import Budget, Ledger, OverBudget
from environment.gateway.dialects import Usage
from environment.gateway.prices import TokenPrice, price_table
from environment.gateway.records import Journal, ModelCall, OpenCall, Outcome

PRICES = price_table({"dear": TokenPrice(10, 10)})
HALF = Usage(input_tokens=25_000, output_tokens=25_000)  # of a dollar


def ended(number: int, usage: Usage, outcome: Outcome = Outcome.OK) -> ModelCall:
    return ModelCall(str(number), 1.0, "openai", "chat", outcome, "dear", "dear", 200, usage=usage)


def test_calls_are_let_through_until_their_number_is_reached() -> None:
    ledger = Ledger(Budget(calls=2), PRICES)
    ledger.admit("1", "dear", 10, 10)
    ledger.add(ended(1, HALF))
    ledger.add(ended(7, Usage(), Outcome.REFUSED))
    ledger.admit("2", "dear", 10, 10)
    with pytest.raises(OverBudget, match="used up: 2 calls"):
        ledger.admit("3", "dear", 10, 10)


def test_calls_under_way_are_set_aside_with_what_they_may_come_to() -> None:
    ledger = Ledger(Budget(tokens=1000), PRICES)
    ledger.admit("1", "dear", 400, 900)
    with pytest.raises(OverBudget):
        ledger.admit("2", "dear", 4, 10)
    ledger.add(ended(1, Usage(input_tokens=100, output_tokens=50)))
    ledger.admit("2", "dear", 4, 10)


def test_money_is_counted_by_the_prices_and_not_without_one() -> None:
    ledger = Ledger(Budget(dollars=1.0), PRICES)
    ledger.add(ended(1, HALF))
    ledger.admit("2", "dear", 40, 1000)
    ledger.add(ended(2, HALF))
    with pytest.raises(OverBudget, match="US dollars"):
        ledger.admit("3", "dear", 40, 1000)
    with pytest.raises(OverBudget, match="price of 'free-for-all' is not known"):
        Ledger(Budget(dollars=1.0), PRICES).admit("1", "free-for-all", 1, 1)


def test_a_gateway_that_follows_knows_what_was_spent(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.end(ended(1, HALF))
    journal.begin(OpenCall("2", 1.0, "openai", "chat", "dear", False, 100, 80))
    ledger = Ledger(Budget(calls=2), PRICES)
    Journal(tmp_path, ledger.add)
    with pytest.raises(OverBudget):
        ledger.admit("3", "dear", 10, 10)
