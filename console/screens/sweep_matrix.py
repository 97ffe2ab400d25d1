"""A sweep's board as a matrix: competitions by split, seeds side by side."""

from __future__ import annotations

from dataclasses import dataclass

from console import wording
from console.screens.run_cell import cell_pieces, draw_run
from console.screens.sweep_lines import View, cell_text
from console.screens.titles import Column, titles_line
from console.tui.painting import (
    ColumnSpan,
    Line,
    Piece,
    fit,
    foreign,
)
from console.tui.theme import Signs
from console.views.ordering import Order
from console.views.sweep import BoardRow, Group, SweepBoard, runs_of_row
from state.records import Run

_MARGIN = 2
_MORE_COLUMNS = 110
_MORE_WIDTH = 30
# Room for a sign, hours and minutes or five decimals, a standing in brackets, and a mark.
_CELL = 13


@dataclass(frozen=True)
class _Layout:
    name: int
    seed: int
    seeds: int
    more: bool


def lines(board: SweepBoard, view: View) -> list[Line]:
    """Competitions by split, seeds side by side; of a filtered row only the runs that match are drawn."""
    layout = _layout(board, view.width)
    made: list[Line] = []
    for group in board.groups:
        rows = [row for row in group.rows if runs_of_row(row, view.filter) or not view.filter]
        if not rows:
            continue
        if made:
            made.append(Line())
        made.append(_group_heading(group, layout, view))
        made += [_row(row, layout, view) for row in rows]
        made.append(_group_total(group, layout, view.signs))
    return made


def _layout(board: SweepBoard, width: int) -> _Layout:
    """Names give way before cells do: a cell that is cut says nothing, a name that is cut still does."""
    seeds = max(1, board.sweep.spec.seeds)
    longest = max((len(competition) for competition in board.sweep.spec.competitions), default=20) + 2
    more = width >= _MORE_COLUMNS and width - _MARGIN - seeds * _CELL - _MORE_WIDTH >= 30
    room = width - _MARGIN - 1 - (_MORE_WIDTH if more else 0)
    whole = (cell for cell in (17, 15, _CELL) if room - seeds * cell >= longest)
    cut_names = (cell for cell in (_CELL, 11, 9) if room - seeds * cell >= min(longest, 32))
    seed = next(whole, 0) or next(cut_names, 7)
    return _Layout(max(12, min(longest, room - seeds * seed)), seed, seeds, more)


def _cells(layout: _Layout) -> tuple[ColumnSpan, ...]:
    start = _MARGIN + layout.name
    return tuple(
        ColumnSpan(start + seed * layout.seed, start + (seed + 1) * layout.seed - 1)
        for seed in range(layout.seeds)
    )


def _group_heading(group: Group, layout: _Layout, view: View) -> Line:
    columns = [Column("", 1), Column(group.split.upper(), layout.name + 1, Order.NAME, role="strong")]
    for seed in range(1, layout.seeds + 1):
        label = f"seed {seed}" if layout.seed >= 8 else f"s{seed}"
        columns.append(Column(label, layout.seed, Order.NEED))
    if layout.more:
        columns += [
            Column("medal", 6, Order.MEDALS, right=True),
            Column("best", 11, right=True),
            Column("bronze", 11, right=True),
        ]
    return titles_line(columns, view.sorting, view.signs)


def _row(row: BoardRow, layout: _Layout, view: View) -> Line:
    name = foreign(row.competition_id, layout.name - 1, ellipsis=view.signs.ellipsis)
    waits = bool(row.waits_for)
    pieces: list[Piece] = [("  ", "text"), (name + " ", "dim" if waits else "text")]
    for run in row.runs:
        pieces += _cell_of(run, row, layout, view)
    if layout.more:
        medals, finished = row.medals
        bronze = row.thresholds.bronze if row.thresholds else None
        earned = f"{medals}/{finished}" if finished else ""
        pieces += [
            (f"{earned:>6}", "text" if medals else "dim"),
            (f"{wording.score(row.best, 9) if row.best is not None else '':>11}", "text"),
            (f"{wording.score(bronze, 9):>11}", "dim"),
        ]
    return Line(tuple(pieces), key=row.competition_id, cells=_cells(layout), selectable=True)


def _cell_of(run: Run | None, row: BoardRow, layout: _Layout, view: View) -> list[Piece]:
    if run is None or (view.filter and not view.filter.accepts(run, row.split)):
        return [(" " * layout.seed, "faint")]
    drawn = list(cell_pieces(draw_run(run, view.signs, view.now, view.limit), layout.seed - 2))
    marked = view.signs.marked if run.id in view.marked else " "
    return [*drawn, (marked, "accent"), (" ", "text")]


def _group_total(group: Group, layout: _Layout, signs: Signs) -> Line:
    pieces: list[Piece] = [("  ", "text"), (fit(_total_label(group, layout.seeds), layout.name), "dim")]
    pieces += [(fit(wording.percent(share), layout.seed), "dim") for share in group.per_seed]
    if layout.more:
        pieces.append(
            (fit(cell_text(group.any_medal, signs), 28, right=True), "text" if group.any_medal else "dim")
        )
    return Line(tuple(pieces))


def _total_label(group: Group, seeds: int) -> str:
    whole = group.any_medal.n if group.any_medal is not None and group.any_medal.n else 0
    return f"any medal, {whole} of {seeds} seeds whole"
