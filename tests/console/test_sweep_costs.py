"""What a sweep's model calls have come to, and may come to, is told only as far as something tells it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.console.nouns.call import CallHistory, read_on
from mlebench_console.console.nouns.costs import (
    KnownPrices,
    known_prices,
    many,
    money,
    short_cost,
    short_costs,
    sweep_costs,
)
from mlebench_console.engine.model_costs import Spending, spending_of
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.environment.gateway.records import CallOutcome, Journal, ModelCall
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import Outcome, RunState, SweepState
from mlebench_console.state.records import Run, Sweep
from mlebench_console.state.usage.model_calls import ModelUse, UseOfRun
from tests.conditions import changed
from tests.engine.scoreboard.worlds import SPEC

# A dollar for each thousand tokens that come in.
PRICES = KnownPrices(price_table({"known": TokenPrice(1000, 0)}))
SWEEP = Sweep(
    "mine",
    "mine",
    SweepState.ACTIVE,
    changed(SPEC, gateway=("openai",), time_limit_seconds=1000),
    *("1", 1, 0, 0.0, ""),
)


def run(run_id: int, state: RunState, outcome: Outcome | None = None) -> Run:
    started = None if state is RunState.QUEUED else 0.0
    return Run(
        *(
            run_id,
            "mine",
            "leaf-classification",
            run_id,
            state,
            outcome,
            None,
            "",
            outcome,
            None,
            None,
            1,
            0,
            0.0,
        ),
        *(started, 500.0 if outcome else None, None, 0, run_id),
    )


def use(
    run_id: int, dollars: float, *, model: str = "known", last_at: float = 1.0, latest: bool = True
) -> UseOfRun:
    tokens = round(1000 * dollars)
    return UseOfRun(
        run_id,
        "openai",
        model,
        calls=1,
        input_tokens=tokens,
        last_at=last_at,
        run_id=run_id,
        is_latest=latest,
    )


def test_what_is_to_come_is_told_by_runs_that_have_ended() -> None:
    found = [
        run(1, RunState.FINISHED, Outcome.GOLD),
        run(2, RunState.FINISHED, Outcome.NO_SUBMISSION),
        run(3, RunState.RUNNING),
        run(4, RunState.QUEUED),
    ]
    uses = {1: [use(1, 3), use(1, 5, latest=False)], 2: [use(2, 1)], 3: [use(3, 1.5)]}
    costs = sweep_costs(SWEEP, found, uses, PRICES, 1)
    assert costs is not None
    # Three and one dollar make two for each run to come; what earlier attempts took is spent, and no measure.
    assert (costs.spending.cost, costs.projected, costs.basis) == (10.5, 10.5 + 0.5 + 2, "by 2 ended")
    assert costs.per_medal == 10.5
    assert short_costs(costs) == "10.50 USD, ~13 USD in the end"


def test_before_the_first_end_running_runs_tell_by_their_pace() -> None:
    found = [run(1, RunState.RUNNING), run(2, RunState.QUEUED)]
    costs = sweep_costs(SWEEP, found, {1: [use(1, 2, last_at=250.0)]}, PRICES, 0)
    assert costs is not None
    assert (costs.projected, costs.basis) == (16, "by 1 running")
    early = sweep_costs(SWEEP, found, {1: [use(1, 2, last_at=20.0)]}, PRICES, 0)
    assert early is not None
    assert (early.projected, early.per_medal) == (None, None)


def test_nothing_is_projected_from_a_cost_that_is_not_known() -> None:
    found = [run(1, RunState.FINISHED, Outcome.GOLD), run(2, RunState.QUEUED)]
    costs = sweep_costs(SWEEP, found, {1: [use(1, 3), use(1, 1, model="new")]}, PRICES, 1)
    assert costs is not None
    assert (costs.projected, costs.per_medal, costs.spending.least_cost) == (None, None, 3)
    assert short_costs(costs) == "over 3.00 USD"


def test_a_sweep_without_a_gateway_has_no_costs() -> None:
    uncounted = replace(SWEEP, spec=changed(SWEEP.spec, gateway=()))
    assert sweep_costs(uncounted, [run(1, RunState.RUNNING)], {}, PRICES, 0) is None


def test_an_ended_sweep_projects_nothing() -> None:
    costs = sweep_costs(SWEEP, [run(1, RunState.FINISHED, Outcome.GOLD)], {1: [use(1, 3)]}, PRICES, 1)
    assert costs is not None
    assert costs.projected is None


@pytest.mark.parametrize(
    ("uses", "text"),
    [
        ([ModelUse(1, "a", "known", input_tokens=1500)], "1.50 USD"),
        ([ModelUse(1, "a", "known", input_tokens=31, estimated=1)], "~0.0310 USD"),
        ([ModelUse(1, "a", "new", input_tokens=5)], "unknown cost"),
        ([ModelUse(1, "a", "new", calls=1)], "0.00 USD"),
    ],
)
def test_a_short_cost_says_what_is_not_known(uses: list[ModelUse], text: str) -> None:
    assert short_cost(spending_of(uses, PRICES.table)) == text


def test_large_numbers_are_short() -> None:
    assert [many(count) for count in (None, 0, 999, 1000, 12_345, 999_400, 4_500_000, 2.1e9)] == [
        *("0", "0", "999", "1.0k", "12.3k", "999k", "4.5M", "2.1G"),
    ]
    assert (money(0), money(0.5), money(1234.5)) == ("0.00 USD", "0.5000 USD", "1,234.50 USD")
    assert Spending().cost == 0


def test_prices_that_are_not_understood_are_told_and_hide_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[model_prices."a"]\ninput = -1\noutput = 1\n')
    found = known_prices(config)
    assert "model_prices" in found.problem
    assert found.table.price_of("gpt-4.1") is not None


def test_a_file_of_calls_is_read_on_and_only_its_last_calls_are_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    usage = TokenUsage(input_tokens=1, output_tokens=1)

    def call(number: int, outcome: CallOutcome = CallOutcome.OK) -> None:
        journal.end(
            ModelCall(
                str(number),
                float(number),
                "openai",
                "chat",
                outcome,
                usage=usage,
                first_seconds=0.5,
                seconds=float(number),
            )
        )

    for number in range(1, 6):
        call(number)
    first = read_on(tmp_path, CallHistory(), kept=3)
    call(6, CallOutcome.REFUSED)
    with (tmp_path / protocol.MODEL_CALLS).open("a") as stream:
        stream.write('{"torn')
    second = read_on(tmp_path, first, kept=3)
    assert [one.id for one in second.last] == ["4", "5", "6"]
    assert list(second.came) == [1.0, 2.0, 3.0, 4.0, 5.0], "what was not sent is no call to the provider"
    assert list(first.came) == list(second.came)
    assert second.typical_seconds() == (3.0, 5.0)
    assert second.counts(0.0, 6.0, 3) == [(0.0, 1.0), (2.0, 2.0), (4.0, 2.0)]
