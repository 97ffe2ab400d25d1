"""Which runs of a sweep a filter leaves, in the order in which they are shown, and which lie between two of them."""

from __future__ import annotations

from console.views.filters import Filter
from console.views.sweep_board import BoardRow, SweepBoard
from state.records import Run


def rows_of(board: SweepBoard) -> list[BoardRow]:
    """The competitions, one split after the other."""
    return [row for group in board.groups for row in group.rows]


def runs_of_row(row: BoardRow, chosen: Filter) -> list[Run]:
    """The runs of a competition that a filter lets through."""
    return [run for run in row.runs if run is not None and chosen.accepts(run, row.split)]


def runs_in_matrix(board: SweepBoard, chosen: Filter) -> list[Run]:
    """Those of all competitions, line by line."""
    return [run for row in rows_of(board) for run in runs_of_row(row, chosen)]


def runs_in_table(board: SweepBoard, chosen: Filter) -> list[Run]:
    """The same runs as the flat table has them."""
    splits = {row.competition_id: row.split for row in rows_of(board)}
    return [run for run in board.runs if chosen.accepts(run, splits[run.competition_id])]


def rectangle(board: SweepBoard, chosen: Filter, one: Run, other: Run) -> list[Run]:
    """What lies between two runs in the matrix."""
    rows = [runs_of_row(row, chosen) for row in rows_of(board)]
    places = [place for place, row in enumerate(rows) if one in row or other in row]
    left, right = sorted((one.seed, other.seed))
    within = rows[min(places) : max(places) + 1]
    return [run for row in within for run in row if left <= run.seed <= right]


def stretch(board: SweepBoard, chosen: Filter, one: Run, other: Run) -> list[Run]:
    """What lies between two runs in the flat table."""
    found = runs_in_table(board, chosen)
    first, last = sorted((found.index(one), found.index(other)))
    return found[first : last + 1]
