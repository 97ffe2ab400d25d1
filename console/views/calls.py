"""The model calls of a run: each one from its attempts' files, and what they come to by model, priced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from environment.gateway.dialects import Usage
from environment.gateway.prices import PriceTable
from environment.gateway.records import ModelCall, read_calls
from environment.runner import protocol
from state import model_calls, runs
from state.database import Database
from state.model_calls import ModelUse


@dataclass(frozen=True)
class ModelTotal:
    """All calls to one model.

    Attributes:
        cost: in US dollars; None where its price is not known.
    """

    provider: str
    model: str
    calls: int
    errors: int
    limited: int
    refused: int
    estimated: int
    usage: Usage
    cost: float | None


@dataclass(frozen=True)
class RunCalls:
    """The calls of a run.

    Attributes:
        totals: by model, as the state has counted them.
        cost: of all of them; None where a price is not known.
        calls: the single ones with the number of their attempt, oldest first.
    """

    totals: tuple[ModelTotal, ...]
    cost: float | None
    calls: tuple[tuple[int, ModelCall], ...]


def calls_of(database: Database, run_id: int, state_dir: Path, prices: PriceTable) -> RunCalls:
    """Read the calls of a run."""
    totals = totals_of(model_calls.of_run(database, run_id), prices)
    calls = [
        (attempt.number, call)
        for attempt in runs.attempts(database, run_id)
        for call in read_calls(state_dir / attempt.directory / protocol.MODEL_CALLS)
    ]
    return RunCalls(totals, _sum(total.cost for total in totals), tuple(calls))


def totals_of(uses: Sequence[ModelUse], prices: PriceTable) -> tuple[ModelTotal, ...]:
    """Add up uses by model."""
    by_model: defaultdict[tuple[str, str], list[ModelUse]] = defaultdict(list)
    for use in uses:
        by_model[use.provider, use.model].append(use)
    return tuple(_total(provider, model, found, prices) for (provider, model), found in by_model.items())


def _total(provider: str, model: str, uses: Sequence[ModelUse], prices: PriceTable) -> ModelTotal:
    usage = Usage(
        input_tokens=sum(use.input_tokens for use in uses),
        cached_tokens=sum(use.cached_tokens for use in uses),
        cache_write_tokens=sum(use.cache_write_tokens for use in uses),
        cache_write_hour_tokens=sum(use.cache_write_hour_tokens for use in uses),
        output_tokens=sum(use.output_tokens for use in uses),
        reasoning_tokens=sum(use.reasoning_tokens for use in uses),
    )
    return ModelTotal(
        provider,
        model,
        calls=sum(use.calls for use in uses),
        errors=sum(use.errors for use in uses),
        limited=sum(use.limited for use in uses),
        refused=sum(use.refused for use in uses),
        estimated=sum(use.estimated for use in uses),
        usage=usage,
        cost=prices.cost([(model, usage)]),
    )


def in_words(totals: Sequence[ModelTotal]) -> str:
    """Tell in one line what model calls have come to; empty where none were counted."""
    if not totals:
        return ""
    calls, estimated = sum(total.calls for total in totals), sum(total.estimated for total in totals)
    given = sum(total.usage.input_tokens or 0 for total in totals)
    got = sum(total.usage.output_tokens or 0 for total in totals)
    cost = _sum(total.cost for total in totals)
    spent = "cost unknown, see 'prices check'" if cost is None else f"{cost:,.4f} USD"
    marked = f" ({estimated:,} calls estimated)" if estimated else ""
    return f"model calls: {calls:,}, {given:,} tokens in and {got:,} out{marked}, {spent}"


def _sum(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else sum(cost for cost in known if cost is not None)
