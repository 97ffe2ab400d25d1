"""A sweep's board as a flat table: every run a line."""

from __future__ import annotations

from console import wording
from console.screens.run_cell import draw_run
from console.screens.sweep_lines import View
from console.screens.titles import Column, titles_line
from console.tui.painting import (
    Line,
    Pieces,
    cut,
    fit,
    foreign,
)
from console.views.ordering import Order
from console.views.sweep import BoardRow, SweepBoard, rows_of, runs_in_table
from state.records import Run

# From this width on it tells how long runs took and have been quiet.
_WITH_TIMES = 140
# A sign and the longest word, so that all columns but the last find room in 80.
_STATE = 13


def lines(board: SweepBoard, view: View) -> list[Line]:
    """The runs that the filter leaves."""
    rows = {row.competition_id: row for row in rows_of(board)}
    found = runs_in_table(board, view.filter)
    return [_row(run, rows[run.competition_id], view) for run in found]


def titles(view: View) -> Line:
    """The names of the columns."""
    columns = [
        Column("", 2),
        Column("run", 6, Order.BENCHMARK, right=True),
        Column("", 2),
        Column("competition", _name_width(view.width) + 1, Order.NAME),
        Column("seed", 4, right=True),
        Column("", 2),
        Column("state", _STATE + 1, Order.NEED),
        Column("score", 10, right=True),
        Column("", 1),
        Column("standing", 13, Order.MEDALS),
        Column("attempt", 7, right=True),
    ]
    if view.width >= _WITH_TIMES:
        columns += [Column("took", 7, right=True), Column("quiet", 6, Order.QUIET, right=True)]
    return titles_line([*columns, Column("", 2), Column("what", 4)], view.sorting, view.signs)


def _name_width(width: int) -> int:
    return min(48, max(16, width - (86 if width >= _WITH_TIMES else 73)))


def _times(took: str, quiet: str, width: int) -> str:
    return f"{took:>7}{quiet:>6}" if width >= _WITH_TIMES else ""


def _took(run: Run, view: View) -> str:
    if run.started_at is None:
        return ""
    return wording.elapsed_within((run.ended_at or view.now) - run.started_at, view.limit)


def _quiet(run: Run, view: View) -> str:
    if not run.is_live or run.last_activity_at is None:
        return ""
    return wording.age(view.now - run.last_activity_at)


def _row(run: Run, row: BoardRow, view: View) -> Line:
    drawn = draw_run(run, view.signs, view.now, view.limit)
    standing = wording.OUTCOME_SHORT[run.standing] if run.standing else ""
    marked = view.signs.marked if run.id in view.marked else " "
    times = 13 if view.width >= _WITH_TIMES else 0
    what = run.failure_text or (row.waits_for if run.state == "queued" else "")
    pieces: Pieces = (
        (f" {marked}", "accent"),
        (f"{run.id:>6}  ", "dim"),
        (foreign(run.competition_id, _name_width(view.width), ellipsis=view.signs.ellipsis) + " ", "text"),
        (f"{run.seed:>4}  ", "text"),
        (fit(f"{drawn.sign} {run.state.value}", _STATE) + " ", drawn.role),
        (f"{wording.score(run.score, 10) if run.score is not None else '':>10} ", "text"),
        (fit(standing, 13), drawn.standing_role if run.is_live else drawn.role),
        (f"{run.attempts:>7}", "dim"),
        (_times(_took(run, view), _quiet(run, view), view.width) + "  ", "dim"),
        (foreign(what, max(0, view.width - _name_width(view.width) - 69 - times)), "dim"),
    )
    return Line(cut(pieces, view.width), key=run.id, selectable=True)
