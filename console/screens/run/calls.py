"""The model calls of a run: totals, budgets, calls over time, and the last calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from mlebench_console.console import wording
from mlebench_console.console.nouns.call import CALL, MODEL_USE, TRAFFIC, CallHistory, CallRow
from mlebench_console.console.nouns.costs import many, money, short_cost, tokens_in_words
from mlebench_console.console.pieces import bar
from mlebench_console.console.roles import Drawing, Pieces, Role
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.tui.widgets.blocks import Block, in_one_line, listing
from mlebench_console.console.tui.widgets.chart import Series, plotted
from mlebench_console.console.views.run import RunFacts, read_calls
from mlebench_console.engine.model_costs import named
from mlebench_console.environment.gateway.records import CallOutcome
from mlebench_console.foundation.conditions import MOST_OF_BUDGET
from mlebench_console.foundation.text import plural

_LINES_FOR_COURSE = 24


def _calls(facts: RunFacts, history: CallHistory, height: int, drawing: Drawing) -> Iterator[Block]:
    """Yield the latest attempt's model calls: totals, charts over time, the models, and the last calls."""
    spent = facts.latest_spending
    if not spent.models:
        yield ((f"  {_why_no_calls(facts)}", "dim"),)
        yield from _traffic(facts)
        return
    cost: Pieces = ((f"  {short_cost(spent)}", "strong" if spent.cost is not None else "warn"),)
    parts: list[Pieces] = [cost, ((plural(spent.calls, "call"), "text"),)]
    if spent.errors:
        by_429 = f" ({spent.limited:,} by 429)" if spent.limited else ""
        parts.append(((f"{spent.errors:,} failed{by_429}", "warn"),))
    if spent.refused:
        parts.append(((f"{spent.refused:,} not sent", "warn"),))
    yield in_one_line(parts)
    yield from _budgets(facts, drawing)
    yield in_one_line((((text, "text"),) for text in tokens_in_words(spent)), ("  tokens ", "dim"))
    yield _pace(history, drawing)
    for text in _caveats(facts):
        yield ((f"  {text}", "warn"),)
    # In few lines the last calls are more useful than the charts.
    is_short = height < _LINES_FOR_COURSE
    course = partial(_course, facts, history, max(3, min(6, height // 4)))
    if not is_short:
        yield course
    most_used = sorted(spent.models, key=lambda each: (-each.input_tokens, each.model))
    names = "model provider calls failed in cached to_cache out reasoned cost"
    yield ()
    yield listing(MODEL_USE.columns(names), most_used, lambda each: ("model", *MODEL_USE.key(each)))
    # The table above names the model if all calls are of one.
    model = " model" if len(most_used) > 1 else ""
    names = f"came{model} outcome status in cached out reasoned first total problem"
    columns = CALL.columns(names, came={"title": "last calls", "width": 10}, status={"title": ""})
    number = facts.attempt.number if facts.attempt is not None else 0
    yield ()
    yield listing(
        columns,
        [CallRow(number, call) for call in reversed(history.last)],
        lambda row: ("call", CALL.key(row)),
    )
    if is_short:
        yield course
    yield from _traffic(facts)


def _course(facts: RunFacts, history: CallHistory, rows: int, drawing: Drawing) -> Iterator[Block]:
    """Draw the number of calls over the attempt's time."""
    attempt = facts.attempt
    if not history.came or attempt is None or attempt.started_at is None:
        return
    took = max(facts.took_seconds(drawing.now), 60.0)
    begin, bars = attempt.started_at, max(10, min(60, (drawing.width - 2) // 2))
    counts = history.counts(begin, begin + took, bars)
    yield ()
    yield ((f"  calls per {wording.span(counts[1][0])}", "dim"),)
    series = Series(
        points=counts,
        span=(0.0, took),
        role="running" if facts.run.is_live else "dim",
        number=lambda value: f"{value:.0f}",
        floor=0.0,
        steps=True,
    )
    yield plotted(series, rows)


def _traffic(facts: RunFacts) -> Iterator[Block]:
    """Yield the traffic through the proxy, counted in bytes only; nothing without a proxy."""
    if facts.traffic:
        yield ()
        yield listing(TRAFFIC.fields, facts.traffic, lambda each: ("host", TRAFFIC.key(each)))


def _why_no_calls(facts: RunFacts) -> str:
    conditions = facts.sweep.conditions
    if conditions.models.gateway:
        return "no model call yet"
    if conditions.network == "models":
        return "calls pass by the proxy, where bytes alone are counted; --gateway counts tokens too"
    return "model calls are not counted: the sweep was launched without --gateway"


def _caveats(facts: RunFacts) -> Iterable[str]:
    """Yield notes about figures that are unknown or estimated."""
    spent = facts.latest_spending
    if spent.unpriced:
        yield f"no price of {named(spent.unpriced)}: name it in [model_prices] of config.toml"
    if facts.price_problem:
        yield facts.price_problem
    if spent.estimated:
        yield f"~ tokens of {plural(spent.estimated, 'call')} are an estimate: no provider has reported them"
    earlier = facts.spending.calls - spent.calls
    if earlier:
        cost = money(facts.spending.least_cost - spent.least_cost)
        yield f"earlier attempts: {plural(earlier, 'call')}, {cost}"


def _budgets(facts: RunFacts, drawing: Drawing) -> Iterator[Block]:
    """Yield how much of each budget of the run is used."""
    budget, spent = facts.sweep.conditions.models.budget, facts.latest_spending
    kinds: tuple[tuple[float, float | None, Callable[[float], str]], ...] = (
        (spent.charged, budget.usd, money),
        (spent.tokens, budget.tokens, lambda count: f"{many(int(count))} tokens"),
        (spent.calls, budget.calls, lambda count: f"{count:,.0f} calls"),
    )
    for used, limit, number in kinds:
        if limit:
            share = used / limit
            role: Role = "bad" if share >= 1 else "warn" if share >= MOST_OF_BUDGET else "running"
            full, empty = bar(share, 20, drawing.signs)
            left = (
                f" {100 * min(share, 9.99):.0f} % of {number(limit)}, {number(max(0.0, limit - used))} left"
            )
            yield ("  budget ", "dim"), (full, role), (empty, "faint"), (left, "text")


def _pace(history: CallHistory, drawing: Drawing) -> Block:
    """Return the state of the last call, and the typical duration of calls."""
    if not history.last:
        return (("  reading calls", "dim"),)
    call = history.last[-1]
    ago = wording.age(drawing.now - call.at - call.seconds)
    parts: list[Pieces] = [
        (
            (f"  last call {'now' if ago == 'now' else f'{ago} ago'}, ", "dim"),
            (call.outcome.value, "dim" if call.outcome is CallOutcome.OK else "warn"),
        )
    ]
    for name, typical in (
        ("first byte", history.typical_first_seconds()),
        ("whole call", history.typical_seconds()),
    ):
        if typical is not None:
            median, most = typical
            parts.append(((f"{name} {median:.2f} s, 95 % below {most:.2f} s", "dim"),))
    return in_one_line(parts)


class CallsPane(Pane):
    """Model calls."""

    name = "calls"
    is_growing = True

    def __init__(self) -> None:
        super().__init__()
        self.data = CallHistory()

    def read(self, facts: RunFacts) -> CallHistory:
        """Read the calls added since the last time."""
        return read_calls(facts, self.data)

    def content(self, view: PaneView) -> Iterable[Block]:
        """Return totals, budgets, calls over time and the last calls."""
        return _calls(view.facts, self.data, view.height, view.drawing)
