"""In which order a sweep's competitions and runs are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from console.model.sweep_board import BoardRow, SweepBoard
from state.lifecycle import RunState
from state.records import Run


class Order(StrEnum):
    """What comes first; the value is its name for people."""

    BENCHMARK = "the benchmark's order"
    NAME = "by name"
    NEED = "what needs you first"
    MEDALS = "most medals first"
    QUIET = "longest quiet first"

    def next(self) -> Order:
        """The order after this one."""
        known = list(Order)
        return known[(known.index(self) + 1) % len(known)]


def in_order(board: SweepBoard, order: Order) -> SweepBoard:
    """The same board with its rows, and its runs for the flat table, in an order."""
    if order is Order.BENCHMARK:
        return board
    key = _KEYS[order]
    groups = tuple(
        replace(group, rows=tuple(sorted(group.rows, key=lambda row: min(map(key, _runs(row)), default=()))))
        for group in board.groups
    )
    return replace(board, groups=groups, runs=tuple(sorted(board.runs, key=key)))


def _runs(row: BoardRow) -> Sequence[Run]:
    return [run for run in row.runs if run is not None]


def _need(run: Run) -> tuple[float, ...]:
    if run.state is RunState.FAILED:
        rank = 0
    elif run.is_live:
        rank = 1 if run.valid is not True else 2
    else:
        rank = 3 if run.state is RunState.QUEUED else 4
    return rank, -(run.ended_at or 0.0), run.id


def _medals(run: Run) -> tuple[float, ...]:
    ranks = {"gold": 0, "silver": 1, "bronze": 2, "above_median": 3, "below_median": 4}
    return ranks.get(run.standing or "", 5), run.id


def _quiet(run: Run) -> tuple[float, ...]:
    return (0 if run.is_live else 1), run.last_activity_at or run.started_at or float("inf"), run.id


_KEYS: dict[Order, Callable[[Run], tuple[float | str, ...]]] = {
    Order.NAME: lambda run: (run.competition_id.lower(), run.seed),
    Order.NEED: _need,
    Order.MEDALS: _medals,
    Order.QUIET: _quiet,
}
