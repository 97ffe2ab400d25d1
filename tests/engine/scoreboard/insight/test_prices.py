"""Hours have a price only where an operator has written one; what is not known costs nothing that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.scoreboard.insight import Effort, Prices, cost_of, read_prices
from foundation.problems import UsageProblem

EFFORT = Effort(runs=4, run_hours=100.0, gpu_hours=50.0, medals=2)


def test_hours_times_prices_is_the_cost() -> None:
    cost = cost_of(EFFORT, Prices(0.5, 2.0, "EUR"))
    assert cost is not None
    assert (cost.total, cost.per_medal, str(cost)) == (150.0, 75.0, "150.00 EUR, 75.00 for a medal")


def test_without_a_price_or_known_hours_nothing_is_told() -> None:
    assert cost_of(EFFORT, Prices()) is None
    assert cost_of(Effort(4, 100.0, None, 2), Prices(0.5, 2.0)) is None
    assert cost_of(Effort(0, 0.0, 0.0, 0), Prices(0.5)) is None


def test_without_a_medal_there_is_no_price_of_one() -> None:
    cost = cost_of(Effort(4, 100.0, None, 0), Prices(0.5))
    assert cost is not None and cost.per_medal is None and str(cost) == "50.00 USD"


def test_prices_are_read_from_config_toml(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    assert read_prices(config) == Prices()
    config.write_text('[prices]\ngpu_hour = 2\ncurrency = "EUR"\n')
    assert read_prices(config) == Prices(None, 2, "EUR")


@pytest.mark.parametrize(
    "text",
    ["[prices]\nhour = 1\n", "[prices]\ngpu_hour = -1\n", "[prices]\ncurrency = 3\n", "prices = 1\n", "["],
)
def test_prices_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    with pytest.raises(UsageProblem):
        read_prices(config)
