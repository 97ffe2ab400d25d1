"""Costs of model calls: of a run, and of a sweep with their projection and its shared budgets; and money in words."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from mlebench_console.engine.model_costs import CURRENCY, Spending, known_cost, named, spending_of
from mlebench_console.engine.providers import model_prices
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.environment.gateway.prices import PriceTable, price_table
from mlebench_console.foundation.conditions import dollars
from mlebench_console.foundation.problems import Problem
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import RunState
from mlebench_console.state.records import Run, Sweep
from mlebench_console.state.usage import budgets, model_calls
from mlebench_console.state.usage.budgets import SharedBudget
from mlebench_console.state.usage.model_calls import UseOfRun

# Running runs that have used less of their time are not used to project costs.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class KnownPrices:
    """The prices of models, and the problem if those of config.toml can't be used; empty if they can."""

    table: PriceTable
    problem: str = ""


def known_prices(config_file: Path) -> KnownPrices:
    """Read prices; an invalid config.toml is reported as a problem, so that runs can be shown nevertheless."""
    try:
        return KnownPrices(model_prices(config_file))
    except Problem as problem:
        return KnownPrices(price_table({}), " ".join(str(problem).splitlines()))


@dataclass(frozen=True)
class SweepCosts:
    """The costs of a sweep's model calls so far, of all attempts, and their projection.

    Attributes:
        projected: US dollars for all of its runs; None if it can't be estimated.
        basis: what the projection is based on, in words.
        medals: the number of medals of its runs so far.
        price_problem: why config.toml's prices are not used.
        budgets: the budgets that its runs share: the sweep's own and those of its experiments.
    """

    spending: Spending
    projected: float | None
    basis: str
    medals: int
    price_problem: str = ""
    budgets: tuple[SharedBudget, ...] = ()

    @property
    def tightest(self) -> SharedBudget | None:
        """The shared budget of which the largest share is used."""
        return max(self.budgets, key=lambda budget: budget.share, default=None)

    @property
    def per_medal(self) -> float | None:
        """US dollars per medal so far; None without a medal, or if a price is unknown."""
        cost = self.spending.cost
        return cost / self.medals if self.medals and cost is not None else None

    def document(self) -> dict[str, Any]:
        """Return it as a part of JSON documents."""
        return {
            "spending": self.spending.document(),
            "projected": self.projected,
            "basis": self.basis,
            "medals": self.medals,
            "per_medal": self.per_medal,
        }


def read_sweep_costs(
    database: Database,
    sweep: Sweep,
    found: Sequence[Run],
    prices: KnownPrices,
    medals: int,
    shared: Mapping[str, tuple[SharedBudget, ...]],
) -> SweepCosts | None:
    """Read the costs of a sweep's model calls, with its shared budgets; None where no gateway counts them."""
    if not sweep.conditions.models.gateway:
        return None
    made = sweep_costs(sweep, found, model_calls.by_run(database, sweep.id), prices, medals)
    return made and replace(made, budgets=shared.get(sweep.id, ()))


def sweep_costs(
    sweep: Sweep,
    found: Sequence[Run],
    uses: Mapping[int, Sequence[UseOfRun]],
    prices: KnownPrices,
    medals: int,
) -> SweepCosts | None:
    """Compute the costs of a sweep's model calls; None where no gateway counts them."""
    if not sweep.conditions.models.gateway:
        return None
    total = spending_of(chain.from_iterable(uses.values()), prices.table)
    made = SweepCosts(total, None, "", medals, prices.problem)
    left = [run for run in found if not run.has_ended]
    if total.cost is None or not left or not total.calls:
        return made
    usual, basis = _usual_cost(sweep, found, uses, prices.table)
    if usual is None:
        return made
    ahead = sum(max(0.0, usual - known_cost(uses.get(run.id, ()), prices.table)) for run in left)
    return replace(made, projected=total.cost + ahead, basis=basis)


def sweep_budgets(database: Database) -> dict[str, tuple[SharedBudget, ...]]:
    """Read the shared budgets of each sweep; sweeps without one are left out."""
    found: dict[str, tuple[SharedBudget, ...]] = {}
    for budget in budgets.all_budgets(database):
        for sweep_id in budgets.sweeps_of(database, budget.scope, budget.name):
            found[sweep_id] = (*found.get(sweep_id, ()), budget)
    return found


def _usual_cost(
    sweep: Sweep, found: Sequence[Run], uses: Mapping[int, Sequence[UseOfRun]], prices: PriceTable
) -> tuple[float | None, str]:
    """Estimate the cost of a run from runs whose results count, else from the spending rate of running ones."""

    def cost_of(run: Run) -> float:
        return known_cost((use for use in uses.get(run.id, ()) if use.is_latest), prices)

    counting = [cost_of(run) for run in found if trial_of(run).counts]
    if counting:
        return statistics.fmean(counting), f"by {len(counting)} ended"
    limit = sweep.conditions.time_limit_seconds
    rates = []
    for run in found:
        last = max((use.last_at for use in uses.get(run.id, ()) if use.is_latest), default=0.0)
        if (
            run.state is RunState.RUNNING
            and run.started_at is not None
            and last - run.started_at > _LEAST_SHARE * limit
        ):
            rates.append(cost_of(run) / (last - run.started_at))
    return (limit * statistics.fmean(rates), f"by {len(rates)} running") if rates else (None, "")


def in_words(spending: Spending) -> str:
    """Write the usage and costs of model calls in one line; empty if none were counted."""
    if not spending.models:
        return ""
    marked = f" ({spending.estimated:,} calls estimated)" if spending.estimated else ""
    return (
        f"model calls: {spending.calls:,}, {spending.input_tokens:,} tokens in"
        f" and {spending.output_tokens:,} out{marked}, {cost_in_words(spending)}"
    )


def costs_in_words(costs: SweepCosts) -> str:
    """Write the costs of a sweep's model calls and their projection in one line."""
    medal = "" if costs.per_medal is None else f", {money(costs.per_medal)} a medal"
    ahead = "" if costs.projected is None else f", about {money(costs.projected)} projected {costs.basis}"
    return f"{in_words(costs.spending)}{medal}{ahead}"


def cost_in_words(spending: Spending) -> str:
    """Write the cost of calls, or its known part where a price is missing."""
    if spending.cost is not None:
        reported = f", of {named(spending.reported)} as its provider reports it" if spending.reported else ""
        return f"{spending.cost:,.4f} {CURRENCY}{reported}"
    least = f", at least {spending.least_cost:,.4f} {CURRENCY}" if spending.least_cost else ""
    return f"cost unknown{least}, see 'prices check'"


def short_cost(spending: Spending) -> str:
    """Write a cost in short: `12.30 USD`, `~0.0312 USD` with estimates, `over 2.88 USD`, `unknown cost`."""
    if spending.cost is not None:
        return f"{'~' if spending.estimated else ''}{money(spending.cost)}"
    return f"over {money(spending.least_cost)}" if spending.least_cost else "unknown cost"


def short_costs(costs: SweepCosts) -> str:
    """Write a sweep's costs so far and projected, and how much of its budget is used, in short."""
    budget = costs.tightest
    used = "" if budget is None else f", {100 * budget.share:.0f} % of budget"
    ahead = "" if costs.projected is None else f", ~{costs.projected:,.0f} {CURRENCY} in the end"
    return f"{short_cost(costs.spending)}{used}{ahead}"


def money(amount: float) -> str:
    """Write an amount of US dollars, amounts below 1 with four decimals."""
    return f"{dollars(amount)} {CURRENCY}"


def tokens_in_words(spending: Spending) -> Iterable[str]:
    """Write the numbers of tokens in short parts: input (cached), output (reasoning)."""
    mark = "~" if spending.estimated else ""
    cached = f" ({many(spending.cached_tokens)} cached)" if spending.cached_tokens else ""
    reasoning = f" ({many(spending.reasoning_tokens)} reasoning)" if spending.reasoning_tokens else ""
    yield f"{mark}{many(spending.input_tokens)} in{cached}"
    yield f"{mark}{many(spending.output_tokens)} out{reasoning}"


def many(count: float | None) -> str:
    """Write a large number in short: `812`, `12.3k`, `4.5M`, `2.1G`."""
    size = float(count or 0)
    for unit in ("", "k", "M"):
        if size < 1000:
            return f"{size:.0f}{unit}" if not unit or size >= 100 else f"{size:.1f}{unit}"
        size /= 1000
    return f"{size:.1f}G"
