"""In which order a sweep's competitions and runs are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TypeVar

from console.views.sorting import Sorting
from console.views.sweep import BoardRow, SweepBoard
from state.lifecycle import RunState
from state.records import Run

Thing = TypeVar("Thing")
_Rank = tuple[float | str, ...]
_By = Callable[[Thing], _Rank]


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


BENCHMARK = Sorting(Order.BENCHMARK)


def told(sorting: Sorting[Order]) -> str:
    """An order's name for people."""
    return f"{sorting.by}, turned round" if sorting.turned else f"{sorting.by}"


def in_order(board: SweepBoard, sorting: Sorting[Order]) -> SweepBoard:
    """The same board with its rows, within their splits, and its runs for the flat table, in an order."""
    key = _KEYS.get(sorting.by)
    groups = [
        replace(group, rows=_ordered(group.rows, key and partial(_first, key), turned=sorting.turned))
        for group in board.groups
    ]
    return replace(board, groups=tuple(groups), runs=_ordered(board.runs, key, turned=sorting.turned))


def _ordered(found: Sequence[Thing], key: _By[Thing] | None, *, turned: bool) -> tuple[Thing, ...]:
    ordered = tuple(found) if key is None else tuple(sorted(found, key=key))
    return ordered[::-1] if turned else ordered


def _first(key: _By[Run], row: BoardRow) -> _Rank:
    """A competition stands where its foremost run does."""
    return min(map(key, _runs(row)), default=())


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


_KEYS: dict[Order, _By[Run]] = {
    Order.NAME: lambda run: (run.competition_id.lower(), run.seed),
    Order.NEED: _need,
    Order.MEDALS: _medals,
    Order.QUIET: _quiet,
}
