"""What a use of models costs, and that an unknown price is never taken for nothing."""

from __future__ import annotations

import sys

import pytest

from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.prices import (
    LONG_PROMPTS,
    PriceSource,
    TokenPrice,
    price_table,
    tier_of,
)

TABLE = price_table({})


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        ("gpt-4o-mini-2024-07-18", TokenUsage(input_tokens=1_000_000), 0.15),
        ("gpt-4o-2024-08-06", TokenUsage(input_tokens=1_000_000, cached_tokens=1_000_000), 1.25),
        ("gpt-5-2025-08-07", TokenUsage(output_tokens=1_000_000, reasoning_tokens=900_000), 10),
        ("openai/gpt-4.1", TokenUsage(input_tokens=500_000, output_tokens=500_000), 5),
        (
            "claude-sonnet-4-5-20250929",
            TokenUsage(1_000_000, 200_000, 300_000, 100_000, 100_000),
            0.5 * 3 + 0.2 * 0.3 + 0.2 * 3.75 + 0.1 * 6 + 0.1 * 15,
        ),
        ("claude-opus-4-5-20251101", TokenUsage(output_tokens=1_000_000), 25),
        ("claude-opus-4-1-20250805", TokenUsage(output_tokens=1_000_000), 75),
        ("gemini-2.5-flash-lite", TokenUsage(input_tokens=1_000_000, output_tokens=1_000_000), 0.5),
    ],
)
def test_tokens_are_paid_for_by_their_kind(model: str, usage: TokenUsage, dollars: float) -> None:
    assert TABLE.cost([(model, usage)]) == pytest.approx(dollars)


def test_an_unknown_model_makes_the_sum_unknown() -> None:
    known = ("gpt-4o", TokenUsage(input_tokens=10))
    assert TABLE.cost([known, ("mystery", TokenUsage(input_tokens=1, output_tokens=1))]) is None
    assert TABLE.cost([known, ("mystery", TokenUsage())]) is not None, "which used nothing"
    assert TABLE.price_of("gpt-4o-realtime-preview") is None


def test_the_operator_s_prices_win_and_the_longest_pattern_counts() -> None:
    table = price_table({"gpt-4o*": TokenPrice(1, 1), "gpt-4o-mini*": TokenPrice(7, 7)})
    assert table.price_of("gpt-4o-2024-08-06") == TokenPrice(1, 1)
    assert table.price_of("gpt-4o-mini") == TokenPrice(7, 7)
    assert table.price_of("gpt-4.1") == TABLE.price_of("gpt-4.1")


@pytest.mark.parametrize(
    ("model", "usage", "service", "dollars"),
    [
        ("gemini-2.5-pro", TokenUsage(200_000, 100_000, output_tokens=1000), "", 0.125 + 0.0125 + 0.01),
        ("gemini-2.5-pro", TokenUsage(200_001, 100_000, output_tokens=1000), "", 0.2500025 + 0.025 + 0.015),
        ("gpt-5.4", TokenUsage(272_000), "default", 0.68),
        ("gpt-5.4", TokenUsage(273_000), "auto", 1.365),
        ("gpt-5.4", TokenUsage(273_000), "FLEX", 1.365 / 2),
        ("gpt-5", TokenUsage(1_000_000, output_tokens=1_000_000), "priority", 22.5),
        ("gpt-5-nano", TokenUsage(1_000_000), "priority", None),
        ("gpt-5", TokenUsage(1_000_000), "scale", None),
        ("claude-sonnet-4-6", TokenUsage(300_000), "standard", 0.9),
        ("mystery", TokenUsage(0, output_tokens=0), "priority", 0.0),
    ],
)
def test_long_prompts_and_other_services_cost_what_they_do(
    model: str, usage: TokenUsage, service: str, dollars: float | None
) -> None:
    assert TABLE.cost_of(model, usage, tier_of(usage, service)) == (
        None if dollars is None else pytest.approx(dollars)
    )


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("claude-2.1", TokenPrice(8, 24)),
        ("anthropic/claude-2.1", TokenPrice(8, 24)),
        ("gpt-4o-realtime-preview", None),  # whose sound costs more than its text
        ("no-such-model", None),
    ],
)
def test_what_nobody_names_costs_what_genai_prices_lists(model: str, price: TokenPrice | None) -> None:
    assert TABLE.price_of(model) == price
    assert TABLE.source_of(model) is (None if price is None else PriceSource.GENAI_PRICES)
    own = price_table({"*claude-2*": TokenPrice(1, 1)})
    assert own.source_of("claude-2.1") is PriceSource.OPERATOR
    assert own.source_of("gpt-4o") is PriceSource.PROJECT


def test_without_genai_prices_such_a_model_has_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert price_table({}).price_of("claude-2.1") is None


def test_prices_for_long_prompts_begin_where_calls_are_counted_apart() -> None:
    lengths = {price.long_prompt for price in TABLE.known.values()}
    assert lengths == {None, *LONG_PROMPTS}
    assert all((price.long_prompt is None) == (price.long_input is None) for price in TABLE.known.values())
