"""What model calls cost: each at the price of its tier, told as unknown where one of them has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.console.nouns.costs import cost_in_words
from mlebench_console.engine.model_costs import spending_of, sum_of, use_of
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.environment.gateway.records import CallOutcome, ModelCall
from mlebench_console.state import database, runs, transitions
from mlebench_console.state.usage import model_calls
from tests.engine.scoreboard.worlds import SPEC
from tests.engine.states import new_sweep

PRICES = price_table({"m": TokenPrice(1, 1, long_prompt=200_000, long_input=3, flex=0.5)})


def call(tokens: int, service: str) -> ModelCall:
    usage = TokenUsage(input_tokens=tokens, output_tokens=0)
    return ModelCall("id", 1.0, "openai", "chat", CallOutcome.OK, "m", "m", service_tier=service, usage=usage)


def test_calls_of_several_tiers_are_added_up_each_at_its_price(tmp_path: Path) -> None:
    state = database.open_for_writing(tmp_path)
    new_sweep(state, SPEC)
    (run, *_) = runs.of_sweep(state, "s")
    attempt_id = transitions.launch(state, run.id, directory="runs/1", runtime="plain", now=1.0).id
    calls = [call(100_000, "default"), call(100_000, ""), call(300_000, ""), call(100_000, "flex")]
    for number, one in enumerate(calls):
        model_calls.add(state, attempt_id, [use_of(attempt_id, one, PRICES)], number)
    uses = model_calls.of_attempt(state, attempt_id)
    state.close()
    assert len(uses) == 3
    (total,) = spending_of(uses, PRICES).models
    assert (total.calls, total.input_tokens) == (4, 600_000)
    assert total.cost == pytest.approx(0.1 + 0.1 + 0.9 + 0.05)
    unpriced = spending_of([*uses, use_of(attempt_id, call(1, "priority"), PRICES)], PRICES)
    assert unpriced.unpriced == ("m",)


def test_what_a_provider_reports_is_the_cost_and_is_said() -> None:
    reported = replace(call(100_000, "reported"), model="unheard-of", cost=0.25)
    spent = spending_of([use_of(1, reported, PRICES)], PRICES)
    assert (spent.cost, spent.charged, spent.reported) == (0.25, 0.25, ("unheard-of",))
    assert spent.models[0].document()["is_reported"]
    assert cost_in_words(spent) == "0.2500 USD, of unheard-of as its provider reports it"
    both = sum_of([spent, spending_of([use_of(1, call(100_000, ""), PRICES)], PRICES)])
    assert both.cost == pytest.approx(0.35)
    assert both.reported == ("unheard-of",)


def test_budgets_are_charged_for_versions_without_a_price_what_was_asked_for_costs() -> None:
    asked = replace(call(100_000, ""), model="m-2026-11-01")
    (use,) = [use_of(1, asked, PRICES)]
    spent = spending_of([use], PRICES)
    assert spent.cost is None
    assert spent.charged == pytest.approx(0.1)
    assert use_of(1, replace(asked, outcome=CallOutcome.BUDGET), PRICES).charged == 0.0
