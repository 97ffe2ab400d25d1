"""Budgets of model calls hold, also for calls at once and after a gateway has died."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from mlebench_console.environment.gateway.budget import (
    AllowanceNeeded,
    Ledger,
    OverBudget,
    SharedAllowance,
)
from mlebench_console.environment.gateway.dialects import Usage
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.environment.gateway.records import CallOutcome, Journal, ModelCall, OpenCall
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import AllowanceRequest, RunAllowance
from mlebench_console.foundation import files
from mlebench_console.foundation.amounts import Budget

PRICES = price_table({"dear": TokenPrice(10, 10)})
HALF = Usage(input_tokens=25_000, output_tokens=25_000)  # of a dollar


def ended(number: int, usage: Usage, outcome: CallOutcome = CallOutcome.OK) -> ModelCall:
    return ModelCall(str(number), 1.0, "openai", "chat", outcome, "dear", "dear", 200, usage=usage)


def test_calls_are_let_through_until_their_number_is_reached() -> None:
    ledger = Ledger(Budget(calls=2), PRICES)
    ledger.admit("1", "dear", 10, 10)
    ledger.add(ended(1, HALF))
    ledger.add(ended(7, Usage(), CallOutcome.REFUSED))
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
    ledger = Ledger(Budget(usd=1.0), PRICES)
    ledger.add(ended(1, HALF))
    ledger.admit("2", "dear", 40, 1000)
    ledger.add(ended(2, HALF))
    with pytest.raises(OverBudget, match="USD"):
        ledger.admit("3", "dear", 40, 1000)
    with pytest.raises(OverBudget, match="price of 'free-for-all' is not known"):
        Ledger(Budget(usd=1.0), PRICES).admit("1", "free-for-all", 1, 1)


def test_an_answer_by_a_version_without_a_price_costs_what_was_asked_for() -> None:
    ledger = Ledger(Budget(usd=0.5), PRICES)
    ledger.add(replace(ended(1, HALF), model="dear-2026-05-01"))
    with pytest.raises(OverBudget, match="USD"):
        ledger.admit("2", "dear", 40, 1000)


def test_a_gateway_that_follows_knows_what_was_spent(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.end(ended(1, HALF))
    journal.begin(OpenCall("2", 1.0, "openai", "chat", "dear", False, 100, 80))
    ledger = Ledger(Budget(calls=2), PRICES)
    Journal(tmp_path, ledger.add)
    with pytest.raises(OverBudget):
        ledger.admit("3", "dear", 10, 10)


def allow(folder: Path, **given: object) -> None:
    values = {"calls": None, "tokens": None, "usd": None, "used_up": False, "of": "the sweep s"}
    files.write_json(folder / protocol.ALLOWANCE, values | given)


def wanted(folder: Path) -> AllowanceRequest:
    return protocol.read(folder / protocol.ALLOWANCE_REQUEST, AllowanceRequest)


def test_a_call_waits_for_its_part_of_a_shared_budget_and_says_what_it_needs(tmp_path: Path) -> None:
    ledger = Ledger(Budget(), PRICES, SharedAllowance(tmp_path))
    ledger.admit("1", "dear", 400, 900)  # nothing is shared
    ledger.add(ended(1, Usage(input_tokens=100, output_tokens=50)))
    allow(tmp_path, tokens=0)
    with pytest.raises(AllowanceNeeded):
        ledger.admit("2", "dear", 400, 900)
    least = wanted(tmp_path).least
    assert (least.calls, least.tokens) == (2, 250)
    assert least.usd == pytest.approx(0.0025)
    assert wanted(tmp_path).wanted.tokens == 150 + 2 * 1000
    allow(tmp_path, tokens=250)
    ledger.admit("2", "dear", 400, 900)
    with pytest.raises(AllowanceNeeded):
        ledger.admit("3", "dear", 4, 10)
    allow(tmp_path, tokens=250, used_up=True)
    with pytest.raises(OverBudget, match="the budget of the sweep s is used up") as refused:
        ledger.admit("3", "dear", 4, 10)
    assert refused.value.is_shared


def test_more_is_asked_for_before_it_is_needed(tmp_path: Path) -> None:
    ledger = Ledger(Budget(), PRICES, SharedAllowance(tmp_path))
    allow(tmp_path, calls=1)
    ledger.admit("1", "dear", 4, 10)
    assert wanted(tmp_path).wanted.calls == 2


def test_with_a_shared_budget_in_money_models_without_a_price_are_refused(tmp_path: Path) -> None:
    allow(tmp_path, usd=1.0)
    with pytest.raises(OverBudget, match="price of 'free-for-all' is not known"):
        Ledger(Budget(), PRICES, SharedAllowance(tmp_path)).admit("1", "free-for-all", 1, 1)


def test_a_damaged_allowance_allows_nothing_until_there_is_another(tmp_path: Path) -> None:
    (tmp_path / protocol.ALLOWANCE).write_text("{")
    ledger = Ledger(Budget(), PRICES, SharedAllowance(tmp_path))
    with pytest.raises(AllowanceNeeded):
        ledger.admit("1", "dear", 1, 1)
    files.write_json(tmp_path / protocol.ALLOWANCE, asdict(RunAllowance(1, None, None, False, "")))
    ledger.admit("1", "dear", 1, 1)


def test_a_service_without_a_price_fits_no_budget_in_money_and_others_count_by_theirs() -> None:
    ledger = Ledger(Budget(usd=1.0), price_table({"dear": TokenPrice(10, 10, priority=1.6)}))
    with pytest.raises(OverBudget, match="'dear' by service 'flex' is not known"):
        ledger.admit("1", "dear", 40, 10, service_tier="flex")
    ledger.admit("1", "dear", 40, 10, service_tier="priority")
    ledger.add(replace(ended(1, HALF), service_tier="priority"))
    ledger.admit("2", "dear", 40, 10_000, service_tier="default")
    ledger.add(replace(ended(2, Usage(input_tokens=20_001)), service_tier="unheard-of"))
    with pytest.raises(OverBudget, match="USD"):
        ledger.admit("3", "dear", 40, 10)
