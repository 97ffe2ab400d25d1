"""A sweep's board as a flat table: every run a line."""

from __future__ import annotations

from console.model import wording
from console.model.shown_runs import rows_of, runs_in_table
from console.model.sweep_board import BoardRow, SweepBoard
from console.painting import Line, Pieces, cut, fit, foreign
from console.screens.run_cell import draw_run
from console.screens.sweep_lines import View
from state.records import Run

# From this width on it tells how long runs took and have been quiet.
_WITH_TIMES = 140


def lines(board: SweepBoard, view: View) -> list[Line]:
    """The runs that the filter leaves, under the names of the columns."""
    rows = {row.competition_id: row for row in rows_of(board)}
    found = runs_in_table(board, view.filter)
    return [_heading(view.width), *(_row(run, rows[run.competition_id], view) for run in found)]


def _heading(width: int) -> Line:
    name = f"{'competition':<{_name_width(width)}}"
    text = (
        f"  {'run':>6}  {name} {'seed':>4}  {'state':<16} {'score':>10} {'standing':<13}{'attempt':>7}"
        f"{_times('took', 'quiet', width)}  what"
    )
    return Line(((fit(text, width), "dim"),))


def _name_width(width: int) -> int:
    return min(48, max(16, width - (89 if width >= _WITH_TIMES else 76)))


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
        (fit(f"{drawn.sign} {run.state.value}", 16) + " ", drawn.role),
        (f"{wording.score(run.score, 10) if run.score is not None else '':>10} ", "text"),
        (fit(standing, 13), drawn.standing_role if run.is_live else drawn.role),
        (f"{run.attempts:>7}", "dim"),
        (_times(_took(run, view), _quiet(run, view), view.width) + "  ", "dim"),
        (foreign(what, max(0, view.width - _name_width(view.width) - 72 - times)), "dim"),
    )
    return Line(cut(pieces, view.width), key=run.id, selectable=True)
