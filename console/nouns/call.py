"""Model calls of a run: single calls, their totals by model, and traffic by the proxy, of which bytes are counted."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField, Row
from mlebench_console.console.nouns.costs import many, money
from mlebench_console.console.roles import Drawing, Pieces, Role
from mlebench_console.engine.model_costs import ModelTotal, Spending, spending_of
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.prices import PriceTable
from mlebench_console.environment.gateway.records import (
    NOT_SENT,
    CallOutcome,
    ModelCall,
    OpenCall,
    from_line,
    under_way,
)
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import jsonlines
from mlebench_console.state import runs
from mlebench_console.state.database import Database
from mlebench_console.state.usage import model_calls
from mlebench_console.state.usage.network_use import NetworkUse

_CALLS_KEPT = 500


@dataclass(frozen=True)
class CallRow:
    """One call, and the number of the attempt that made it."""

    attempt: int
    call: ModelCall


@dataclass(frozen=True)
class CallHistory:
    """The calls of one attempt as far as its file has been read: times of all calls, and the last ones in full.

    Attributes:
        offset: how far the file was read.
        came: the arrival time of each call that was sent, in the file's order.
        seconds, first_seconds: how long calls took in total, and until the first byte if there was one.
        last: the newest calls, oldest first, including those that were not sent.
        open: calls that have not ended.
    """

    offset: int = 0
    came: array[float] = field(default_factory=lambda: array("d"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    first_seconds: array[float] = field(default_factory=lambda: array("d"))
    last: tuple[ModelCall, ...] = ()

    def typical_seconds(self) -> tuple[float, float] | None:
        """The median and the 95th percentile of the duration of calls; None before the first."""
        return _typical(self.seconds)

    def typical_first_seconds(self) -> tuple[float, float] | None:
        """The same for the time until the first byte of an answer."""
        return _typical(self.first_seconds)

    def counts(self, begin: float, end: float, parts: int) -> list[tuple[float, float]]:
        """Return the number of calls in each of `parts` equal intervals, as (seconds after `begin`, count)."""
        width = max(end - begin, 1.0) / parts
        counts = [0] * parts
        for at in self.came:
            counts[min(parts - 1, max(0, int((at - begin) / width)))] += 1
        return [(place * width, float(count)) for place, count in enumerate(counts)]


def read_on(folder: Path, known: CallHistory, *, kept: int = _CALLS_KEPT) -> CallHistory:
    """Read the calls added to an attempt's file since the last read; waits for the disk."""
    offset, path = known.offset, folder / protocol.MODEL_CALLS
    came, seconds, first = known.came[:], known.seconds[:], known.first_seconds[:]
    last = list(known.last)
    while (lines := jsonlines.read(path, offset)).offset > offset:
        offset = lines.offset
        for line in lines.values:
            call = from_line(line)
            if call is None or any(call.id == other.id for other in last[-2:]):
                continue  # not a call, or one that was written twice
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
        spending: their usage and costs, as counted in the state.
        calls: the last calls, oldest first.
        under_way: calls that wait for their turn, or were sent and have not ended.
    """

    spending: Spending
    calls: tuple[CallRow, ...]
    under_way: tuple[OpenCall, ...] = ()


def calls_of(database: Database, run_id: int, state_dir: Path, prices: PriceTable, *, last: int) -> RunCalls:
    """Read the last `last` calls of a run and its usage."""
    calls: list[CallRow] = []
    open_calls: list[OpenCall] = []
    for attempt in runs.attempts(database, run_id):
        history = read_on(state_dir / attempt.directory, CallHistory(), kept=last)
        calls += [CallRow(attempt.number, call) for call in history.last]
        open_calls += under_way(state_dir / attempt.directory)
    shown = calls[len(calls) - last :] if last < len(calls) else calls
    spending = spending_of(model_calls.of_run(database, run_id), prices)
    return RunCalls(spending, tuple(shown), tuple(open_calls))


def _tokens(
    name: str,
    count: Callable[[TokenUsage], int | None],
    usage: Callable[[Row], tuple[TokenUsage, bool]],
    width: int = 7,
    *,
    title: str | None = None,
    drop: int = 0,
) -> NounField[Row]:
    """Return the field of one kind of tokens; `usage` returns the tokens of a row and whether they are estimated."""

    def cell(row: Row, _drawing: Drawing) -> Cell:
        found, estimated = usage(row)
        tokens = count(found)
        if tokens is None:
            return ""
        mark = "~" if estimated else ""
        return Forms((f"{mark}{tokens:,}", f"{mark}{many(tokens)}"))

    role: Role = "dim" if drop else "text"
    return NounField(name, cell, width, title=title, right=True, gap=1, drop=drop, role=role)


def _all_tokens(usage: Callable[[Row], tuple[TokenUsage, bool]]) -> tuple[NounField[Row], ...]:
    """Return the fields of all kinds of tokens; only input and output are estimated."""

    def reported(row: Row) -> tuple[TokenUsage, bool]:
        return usage(row)[0], False

    return (
        _tokens("in", lambda each: each.input_tokens, usage),
        _tokens("cached", lambda each: each.cached_tokens, reported, drop=3),
        _tokens("to_cache", lambda each: each.cache_write_tokens, reported, 8, title="to cache", drop=6),
        _tokens("out", lambda each: each.output_tokens, usage),
        _tokens("reasoned", lambda each: each.reasoning_tokens, reported, 9, drop=4),
    )


def _outcome(row: CallRow, _drawing: Drawing) -> Pieces:
    return ((row.call.outcome.value, "good" if row.call.outcome is CallOutcome.OK else "warn"),)


def _status(row: CallRow, _drawing: Drawing) -> str:
    return "" if row.call.outcome is CallOutcome.OK or not row.call.status else str(row.call.status)


def _first(row: CallRow, _drawing: Drawing) -> str:
    return "" if row.call.first_seconds is None else f"{row.call.first_seconds:.2f}"


_TIMES = (wording.date_and_time, wording.day_and_time, wording.clock_seconds)
CALL = Noun[CallRow](
    "call",
    key=lambda row: row.call.id,
    document=lambda row, _now: {"attempt": row.attempt, **asdict(row.call)},
    fields=(
        NounField("came", lambda row, _: Forms([form(row.call.at) for form in _TIMES]), 8, role="dim"),
        NounField("model", lambda row, _: row.call.model or row.call.asked_model, 10, grows=40),
        NounField("outcome", _outcome, 7, gap=1),
        NounField("status", _status, 3, gap=1, right=True, role="warn"),
        *_all_tokens(lambda row: (row.call.usage, row.call.estimated)),
        NounField("first", _first, 7, title="first s", right=True, gap=1, role="dim", drop=2),
        NounField(
            "total",
            lambda row, _: f"{row.call.seconds:.1f}",
            7,
            title="total s",
            right=True,
            gap=1,
            role="dim",
        ),
        NounField("problem", lambda row, _: row.call.problem, 32, grows=REST, drop=1, role="warn"),
    ),
)


def _count(
    name: str, count: Callable[[ModelTotal], int], width: int, *, drop: int = 0
) -> NounField[ModelTotal]:
    return NounField(
        name, lambda row, _: f"{count(row):,}" if count(row) else "", width, right=True, gap=1, drop=drop
    )


def _cost(row: ModelTotal, _drawing: Drawing) -> str:
    if not row.calls:
        return f"{row.refused:,} not sent"
    return "unknown" if row.cost is None else money(row.cost)


MODEL_USE = Noun[ModelTotal](
    "model",
    key=lambda row: (row.provider, row.model),
    document=lambda row, _now: row.document(),
    fields=(
        NounField("model", lambda row, _: row.model, 8, grows=48),
        NounField("provider", lambda row, _: row.provider, 10, role="dim", drop=5),
        _count("calls", lambda row: row.calls, 6),
        _count("failed", lambda row: row.errors, 6, drop=7),
        _count("429", lambda row: row.limited, 6, drop=7),
        _count("refused", lambda row: row.refused, 7, drop=7),
        _count("estimated", lambda row: row.estimated, 9, drop=7),
        *_all_tokens(lambda row: (row.usage, False)),
        NounField("cost", _cost, 12, right=True, gap=1),
    ),
)
TRAFFIC = Noun[NetworkUse](
    "host",
    key=lambda row: row.host,
    fields=(
        NounField("host", lambda row, _: row.host, 20, grows=60, title="by bytes only, at"),
        NounField("connections", lambda row, _: f"{row.connections:,}", 11, right=True, gap=1),
        NounField("sent", lambda row, _: wording.size(row.sent_bytes), 9, right=True, gap=1),
        NounField("received", lambda row, _: wording.size(row.received_bytes), 9, right=True, gap=1),
    ),
)
