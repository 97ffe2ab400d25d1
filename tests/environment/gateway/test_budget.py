"""Budgets of model calls hold, also for calls at once and after a gateway has died."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.environment.gateway.budget import (
    SILENCE_SECONDS,
    EngineSilent,
    Ledger,
    NoticeReader,
    OverBudget,
)
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.orders import BudgetNotice
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.environment.gateway.records import CallOutcome, Journal, ModelCall, OpenCall
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.conditions import Budget
from tests.clocks import HandClock

PRICES = price_table({"dear": TokenPrice(10, 10)})
HALF = TokenUsage(input_tokens=25_000, output_tokens=25_000)  # of a dollar


def ended(number: int, usage: TokenUsage, outcome: CallOutcome = CallOutcome.OK) -> ModelCall:
    return ModelCall(str(number), 1.0, "openai", "chat", outcome, "dear", "dear", 200, usage=usage)


def test_calls_are_let_through_until_their_number_is_reached() -> None:
    ledger = Ledger(Budget(calls=2), PRICES)
    ledger.admit("1", "dear", 10, 10)
    ledger.add(ended(1, HALF))
    ledger.add(ended(7, TokenUsage(), CallOutcome.REFUSED))
    ledger.admit("2", "dear", 10, 10)
    with pytest.raises(OverBudget, match="used up: 2 calls"):
        ledger.admit("3", "dear", 10, 10)


def test_calls_under_way_are_set_aside_with_what_they_may_come_to() -> None:
    ledger = Ledger(Budget(tokens=1000), PRICES)
    ledger.admit("1", "dear", 400, 900)
    with pytest.raises(OverBudget):
        ledger.admit("2", "dear", 4, 10)
    ledger.add(ended(1, TokenUsage(input_tokens=100, output_tokens=50)))
    ledger.admit("2", "dear", 4, 10)


def test_money_is_counted_by_the_prices_and_not_without_one() -> None:
    ledger = Ledger(Budget(usd=1.0), PRICES)
    ledger.add(ended(1, HALF))
    ledger.admit("2", "dear", 40, 1000)
    with pytest.raises(OverBudget, match="does not cover the most that this call may use"):
        ledger.admit("3", "dear", 40, 49_000)
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


class Sharing:
    """A ledger with the notices that its engine writes, on a clock of its own."""

    def __init__(self, folder: Path, *notices: BudgetNotice) -> None:
        self.path = folder / protocol.SHARED_BUDGET
        self.clock = HandClock()
        for notice in notices:
            protocol.write(self.path, notice)
        self.reader = NoticeReader(folder, self.clock.monotonic)
        self.ledger = Ledger(Budget(), PRICES, self.reader)

    def hears(self, used_up: str = "", *, in_money: bool = False) -> None:
        protocol.write(self.path, BudgetNotice(1.0, used_up, in_money))

    def admit(self, model: str = "dear") -> None:
        self.ledger.admit("1", model, 400, 900)


def test_a_call_is_refused_while_the_engine_says_that_a_shared_budget_is_used_up(tmp_path: Path) -> None:
    sharing = Sharing(tmp_path)
    sharing.admit()  # nothing is shared
    sharing.hears()
    sharing.admit()
    sharing.hears("the sweep s")
    with pytest.raises(OverBudget, match="the budget of the sweep s is used up") as refused:
        sharing.admit()
    assert refused.value.is_shared
    sharing.hears()
    sharing.admit()


def test_calls_are_refused_when_the_engine_has_said_nothing_for_ten_minutes_until_it_does(
    tmp_path: Path,
) -> None:
    sharing = Sharing(tmp_path, BudgetNotice(1.0, "", in_money=False))
    sharing.admit()
    sharing.clock.moment += SILENCE_SECONDS
    sharing.admit()
    sharing.clock.moment += 1
    with pytest.raises(EngineSilent):
        sharing.admit()
    sharing.hears()
    sharing.admit()
    sharing.clock.moment += SILENCE_SECONDS
    sharing.hears()
    sharing.reader.look()
    sharing.clock.moment += SILENCE_SECONDS
    sharing.admit()


def test_a_notice_counts_from_when_it_was_seen_first_whatever_its_own_clock_says(tmp_path: Path) -> None:
    sharing = Sharing(tmp_path, BudgetNotice(9e9, "", in_money=False))
    sharing.reader.look()
    sharing.clock.moment += SILENCE_SECONDS + 1
    for _ in range(2):
        with pytest.raises(EngineSilent):
            sharing.admit()


def test_a_budget_that_is_no_longer_shared_limits_nothing(tmp_path: Path) -> None:
    sharing = Sharing(tmp_path, BudgetNotice(1.0, "the sweep s", in_money=False))
    sharing.path.unlink()
    sharing.clock.moment += 2 * SILENCE_SECONDS
    sharing.admit()


def test_with_a_shared_budget_in_money_models_without_a_price_are_refused(tmp_path: Path) -> None:
    sharing = Sharing(tmp_path, BudgetNotice(1.0, "", in_money=True))
    with pytest.raises(OverBudget, match="price of 'free-for-all' is not known"):
        sharing.admit("free-for-all")


def test_a_damaged_notice_is_no_sign_of_life_and_another_one_replaces_it(tmp_path: Path) -> None:
    sharing = Sharing(tmp_path)
    sharing.path.write_text("{")
    with pytest.raises(EngineSilent):
        sharing.admit()
    sharing.hears()
    sharing.admit()
    sharing.path.write_text("{")
    sharing.admit()


def test_a_service_without_a_price_fits_no_budget_in_money_and_others_count_by_theirs() -> None:
    ledger = Ledger(Budget(usd=1.0), price_table({"dear": TokenPrice(10, 10, priority=1.6)}))
    with pytest.raises(OverBudget, match="'dear' by service 'flex' is not known"):
        ledger.admit("1", "dear", 40, 10, service_tier="flex")
    ledger.admit("1", "dear", 40, 10, service_tier="priority")
    ledger.add(replace(ended(1, HALF), service_tier="priority"))
    ledger.admit("2", "dear", 40, 10_000, service_tier="default")
    ledger.add(replace(ended(2, TokenUsage(input_tokens=20_001)), service_tier="unheard-of"))
    with pytest.raises(OverBudget, match="USD"):
        ledger.admit("3", "dear", 40, 10)


def test_a_call_is_sent_only_if_all_its_answers_fit_beside_what_is_reserved() -> None:
    ledger = Ledger(Budget(tokens=5000), PRICES)
    ledger.admit("1", "dear", 4, 16, answers=128)
    ledger.admit("2", "dear", 4, 16, answers=128)
    with pytest.raises(OverBudget, match="128 x 16 tokens of answers: of it 4,098 of 5,000 tokens are used"):
        ledger.admit("3", "dear", 4, 16, answers=128)
    ledger.release("1")
    ledger.admit("3", "dear", 4, 16, answers=128)


@pytest.mark.parametrize(
    ("budget", "answers", "limit"),
    [
        (Budget(), 1, None),
        (Budget(calls=1), 1, None),
        (Budget(tokens=1_001), 1, 1000),
        (Budget(tokens=1_001), 3, 333),
        (Budget(tokens=257), 1, 256),
        (Budget(tokens=100_000), 1, 16_384),
        (Budget(tokens=131_073), 1, None),
        (Budget(usd=0.01), 1, 998),
        (Budget(tokens=600, usd=0.01), 1, 599),
    ],
)
def test_a_call_without_a_limit_gets_what_is_left(budget: Budget, answers: int, limit: int | None) -> None:
    assert Ledger(budget, PRICES).admit("1", "dear", 4, None, answers=answers) == limit


@pytest.mark.parametrize(("tokens", "answers"), [(256, 1), (1000, 4)])
def test_a_call_without_a_limit_is_refused_where_too_little_is_left(tokens: int, answers: int) -> None:
    with pytest.raises(OverBudget):
        Ledger(Budget(tokens=tokens), PRICES).admit("1", "dear", 4, None, answers=answers)
