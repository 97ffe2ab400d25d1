"""Model calls: single ones from attempts' files, and what those of runs and sweeps have come to."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from engine.model_costs import CURRENCY, Spending, known_cost, prices_for, spending_of
from engine.providers import model_prices
from engine.runs.budgets import BudgetStanding, standings
from engine.scoreboard.own_runs import trial_of
from environment.gateway.prices import PriceTable, price_table
from environment.gateway.records import NOT_SENT, ModelCall, OpenCall, from_line, under_way
from environment.runner import protocol
from foundation import jsonlines
from foundation.problems import Problem
from state import runs, sweeps
from state.database import Database
from state.lifecycle import RunState
from state.records import Run, Sweep
from state.usage import budgets, model_calls
from state.usage.model_calls import UseOfRun

_CALLS_KEPT = 500
MOST_OF_BUDGET = 0.8  # from which on it is warned of
# Less of a running run says nothing of what it will cost.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class KnownPrices:
    """The prices of models, and why those of config.toml are not among them; empty where they are."""

    table: PriceTable
    problem: str = ""


def known_prices(config_file: Path) -> KnownPrices:
    """Read prices; a config.toml that is not understood keeps no run from being shown."""
    try:
        return KnownPrices(model_prices(config_file))
    except Problem as problem:
        return KnownPrices(price_table({}), " ".join(str(problem).splitlines()))


# The calls of a run


@dataclass(frozen=True)
class CallHistory:
    """The calls of one attempt, as far as its file has been read: what a chart needs of all, and the last ones whole.

    Attributes:
        offset: how far the file was read.
        came: when each call that was sent came, in the file's order.
        seconds, first_seconds: how long they took as a whole, and until the first byte where there was one.
        last: the newest calls, oldest first, those that were not sent too.
        open: calls that are under way.
    """

    offset: int = 0
    came: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    first_seconds: array[float] = field(default_factory=lambda: array("d"))
    last: tuple[ModelCall, ...] = ()

    def typical_seconds(self) -> tuple[float, float] | None:
        """How long a call takes: the median, and what 95 % stay below; None before the first."""
        return _typical(self.seconds)

    def typical_first_seconds(self) -> tuple[float, float] | None:
        """Likewise until the first byte of an answer."""
        return _typical(self.first_seconds)

    def counts(self, begin: float, end: float, parts: int) -> list[tuple[float, float]]:
        """Count the calls in equal parts of a time, each by its beginning."""
        width = max(end - begin, 1.0) / parts
        counts = [0] * parts
        for at in self.came:
            counts[min(parts - 1, max(0, int((at - begin) / width)))] += 1
        return [(place * width, float(count)) for place, count in enumerate(counts)]


def read_on(folder: Path, known: CallHistory, *, kept: int = _CALLS_KEPT) -> CallHistory:
    """Read what an attempt's file of calls has got since it was read last; waits for the disk."""
    offset, path = known.offset, folder / protocol.MODEL_CALLS
    came, seconds, first = known.came[:], known.seconds[:], known.first_seconds[:]
    last = list(known.last)
    while (lines := jsonlines.read(path, offset)).offset > offset:
        offset = lines.offset
        for line in lines.values:
            call = from_line(line)
            if call is None or any(call.id == other.id for other in last[-2:]):
                continue  # none, or one that was written twice
            last.append(call)
            if call.outcome not in NOT_SENT:
                came.append(call.at)
                seconds.append(call.seconds)
                if call.first_seconds is not None:
                    first.append(call.first_seconds)
        last = last[len(last) - kept :] if len(last) > kept else last
    return CallHistory(offset, came, seconds, first, tuple(last))


def _typical(values: Sequence[float]) -> tuple[float, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


@dataclass(frozen=True)
class RunCalls:
    """The calls of a run.

    Attributes:
        spending: what they have come to, as the state has counted them.
        calls: the last single ones with the number of their attempt, oldest first.
        under_way: calls that wait, for their turn or a budget, or were sent and have not ended.
    """

    spending: Spending
    calls: tuple[tuple[int, ModelCall], ...]
    under_way: tuple[OpenCall, ...] = ()


def calls_of(database: Database, run_id: int, state_dir: Path, prices: PriceTable, *, last: int) -> RunCalls:
    """Read the calls of a run, at most so many of the last ones."""
    calls: list[tuple[int, ModelCall]] = []
    open_calls: list[OpenCall] = []
    for attempt in runs.attempts(database, run_id):
        history = read_on(state_dir / attempt.directory, CallHistory(), kept=last)
        calls += [(attempt.number, call) for call in history.last]
        open_calls += under_way(state_dir / attempt.directory)
    shown = calls[len(calls) - last :] if last < len(calls) else calls
    spec = sweeps.get(database, runs.get(database, run_id).sweep_id).spec
    spending = spending_of(model_calls.of_run(database, run_id), prices_for(spec, prices))
    return RunCalls(spending, tuple(shown), tuple(open_calls))


# What calls have come to


@dataclass(frozen=True)
class SweepCosts:
    """What the model calls of a sweep have come to so far, with all attempts, and may come to.

    Attributes:
        projected: US dollars for all of its runs; None where nothing tells.
        basis: what that is told by, in words.
        medals: of its runs so far.
        price_problem: why config.toml's prices are not among those used.
        budgets: those that its runs share, its own and those of its experiments.
    """

    spending: Spending
    projected: float | None
    basis: str
    medals: int
    price_problem: str = ""
    budgets: tuple[BudgetStanding, ...] = ()

    @property
    def tightest(self) -> BudgetStanding | None:
        """The shared budget that is nearest to its end."""
        return max(self.budgets, key=lambda standing: standing.share, default=None)

    @property
    def per_medal(self) -> float | None:
        """US dollars so far for a medal; None without a medal, or where a price is not known."""
        cost = self.spending.cost
        return cost / self.medals if self.medals and cost is not None else None

    def document(self) -> dict[str, Any]:
        """Write it as JSON documents have it."""
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
    shared: Mapping[str, tuple[BudgetStanding, ...]],
) -> SweepCosts | None:
    """Read what the model calls of a sweep have come to, with the budgets that its runs share."""
    if not sweep.spec.gateway:
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
    """Add up a sweep's model calls; None where no gateway counts them."""
    if not sweep.spec.gateway:
        return None
    table = prices_for(sweep.spec, prices.table)
    total = spending_of(chain.from_iterable(uses.values()), table)
    made = SweepCosts(total, None, "", medals, prices.problem)
    left = [run for run in found if not run.has_ended]
    if total.cost is None or not left or not total.calls:
        return made
    usual, basis = _usual_cost(sweep, found, uses, table)
    if usual is None:
        return made
    ahead = sum(max(0.0, usual - known_cost(uses.get(run.id, ()), table)) for run in left)
    return replace(made, projected=total.cost + ahead, basis=basis)


def sweep_budgets(database: Database) -> dict[str, tuple[BudgetStanding, ...]]:
    """Read how the budgets stand that the runs of each sweep share; sweeps without one are left out."""
    found: dict[str, tuple[BudgetStanding, ...]] = {}
    for standing in standings(database):
        for sweep_id in budgets.sweeps_of(database, standing.budget):
            found[sweep_id] = (*found.get(sweep_id, ()), standing)
    return found


def _usual_cost(
    sweep: Sweep, found: Sequence[Run], uses: Mapping[int, Sequence[UseOfRun]], prices: PriceTable
) -> tuple[float | None, str]:
    """What a run usually costs: by those whose results count, else by how fast the running ones spend."""

    def cost_of(run: Run) -> float:
        return known_cost((use for use in uses.get(run.id, ()) if use.is_latest), prices)

    counting = [cost_of(run) for run in found if trial_of(run).counts]
    if counting:
        return statistics.fmean(counting), f"by {len(counting)} ended"
    limit = sweep.spec.time_limit_seconds
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


# In words


def in_words(spending: Spending) -> str:
    """Tell in one line what model calls have come to; empty where none were counted."""
    if not spending.models:
        return ""
    usage = spending.usage
    marked = f" ({spending.estimated:,} calls estimated)" if spending.estimated else ""
    return (
        f"model calls: {spending.calls:,}, {usage.input_tokens:,} tokens in and {usage.output_tokens:,} out{marked},"
        f" {cost_in_words(spending)}"
    )


def costs_in_words(costs: SweepCosts) -> str:
    """Tell in one line what the model calls of a sweep have come to, and may come to."""
    medal = "" if costs.per_medal is None else f", {money(costs.per_medal)} a medal"
    ahead = "" if costs.projected is None else f", about {money(costs.projected)} projected {costs.basis}"
    return f"{in_words(costs.spending)}{medal}{ahead}"


def cost_in_words(spending: Spending) -> str:
    """Tell what calls have cost, and what of that is not known."""
    if spending.cost is not None:
        return f"{spending.cost:,.4f} {CURRENCY}"
    least = f", at least {spending.least_cost:,.4f} {CURRENCY}" if spending.least_cost else ""
    return f"cost unknown{least}, see 'prices check'"


def short_cost(spending: Spending) -> str:
    """Write a cost in a few cells: `12.30 USD`, `~0.0312 USD` with estimates, `over 2.88 USD`, `unknown cost`."""
    if spending.cost is not None:
        return f"{'~' if spending.estimated else ''}{money(spending.cost)}"
    return f"over {money(spending.least_cost)}" if spending.least_cost else "unknown cost"


def cost_forms(costs: SweepCosts) -> tuple[str, ...]:
    """Tell of a sweep's costs in a column, longest form first: so far, and projected."""
    so_far, budget = short_cost(costs.spending), costs.tightest
    ahead = "" if costs.projected is None else f" of ~{costs.projected:,.0f} {CURRENCY}"
    used = "" if budget is None else f", {100 * budget.share:.0f} % of budget"
    return tuple(dict.fromkeys((f"{so_far}{ahead}{used}", f"{so_far}{used}", f"{so_far}{ahead}", so_far)))


def money(dollars: float) -> str:
    """Write an amount of US dollars, small ones with four decimals."""
    return f"{dollars:,.2f} {CURRENCY}" if dollars >= 1 or not dollars else f"{dollars:.4f} {CURRENCY}"


def tokens_in_words(spending: Spending) -> Iterable[str]:
    """Tell of tokens in short parts: in with those from caches, out with reasoning."""
    usage = spending.usage
    mark = "~" if spending.estimated else ""
    cached = f" ({many(usage.cached_tokens)} cached)" if usage.cached_tokens else ""
    reasoning = f" ({many(usage.reasoning_tokens)} reasoning)" if usage.reasoning_tokens else ""
    yield f"{mark}{many(usage.input_tokens)} in{cached}"
    yield f"{mark}{many(usage.output_tokens)} out{reasoning}"


def many(count: float | None) -> str:
    """Write a large number short: `812`, `12.3k`, `4.5M`, `2.1G`."""
    size = float(count or 0)
    for unit in ("", "k", "M"):
        if size < 1000:
            return f"{size:.0f}{unit}" if not unit or size >= 100 else f"{size:.1f}{unit}"
        size /= 1000
    return f"{size:.1f}G"
