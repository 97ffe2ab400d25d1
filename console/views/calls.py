"""The model calls of a run: each one from its attempts' files, and what they come to, in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.model_costs import CURRENCY, Spending, spending_of
from environment.gateway.prices import PriceTable
from environment.gateway.records import ModelCall, read_calls
from environment.runner import protocol
from state import model_calls, runs
from state.database import Database


@dataclass(frozen=True)
class RunCalls:
    """The calls of a run.

    Attributes:
        spending: what they have come to, as the state has counted them.
        calls: the single ones with the number of their attempt, oldest first.
    """

    spending: Spending
    calls: tuple[tuple[int, ModelCall], ...]


def calls_of(database: Database, run_id: int, state_dir: Path, prices: PriceTable) -> RunCalls:
    """Read the calls of a run."""
    calls = [
        (attempt.number, call)
        for attempt in runs.attempts(database, run_id)
        for call in read_calls(state_dir / attempt.directory / protocol.MODEL_CALLS)
    ]
    return RunCalls(spending_of(model_calls.of_run(database, run_id), prices), tuple(calls))


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


def cost_in_words(spending: Spending) -> str:
    """Tell what calls have cost, and what of that is not known."""
    if spending.cost is not None:
        return f"{spending.cost:,.4f} {CURRENCY}"
    least = f", at least {spending.least_cost:,.4f} {CURRENCY}" if spending.least_cost else ""
    return f"cost unknown{least}, see 'prices check'"
