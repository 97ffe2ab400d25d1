"""Tables: fields of a noun fitted to the width of a list, with a heading, marks and the sort order.

    columns = RUN.columns("run competition state why", competition={"width": 28})
    table = Table(columns, found, drawing, sorting=sorting, mark=lambda row: row.run.id in marks)
    line_list.show([table.line(row, key=RUN.key(row)) for row in found], heading=table.heading())

`LineList` shows the heading above its lines, without scrolling it, and posts `TitleClicked(by)` when a title is
clicked. A list of several tables, or of groups, puts `table.heading(...)` among its lines instead. A table does not
depend on the type of its rows, and does not sort them. `console.fitting` has the rules by which columns get widths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Generic

from rich.cells import cell_len

from mlebench_console.console.fields import Cell, Forms, NounField, Rest, Row, cleaned
from mlebench_console.console.fitting import fitted_to_screen
from mlebench_console.console.lists import SortOrder
from mlebench_console.console.pieces import ColumnSpan, Line, cut, fit, width_of, wrapped
from mlebench_console.console.roles import Drawing, Piece, Pieces


class Table(Generic[Row]):
    """Fields fitted to the width of a list.

    Args:
        columns: from left to right.
        rows: determine the widths; other rows can be drawn too.
        drawing: has the width of the whole table.
        sorting: the sort order, which the heading shows by an arrow.
        mark: returns whether a row is marked; without it there is no column for marks.
    """

    def __init__(
        self,
        columns: Sequence[NounField[Row]],
        rows: Sequence[Row],
        drawing: Drawing,
        *,
        sorting: SortOrder[Any] | None = None,
        mark: Callable[[Row], bool] | None = None,
    ) -> None:
        self._drawing = drawing
        self._signs = drawing.signs
        self._sorting = sorting
        self._mark = mark
        self._margin = 2 if mark is None else 3
        self._columns = columns
        self._spans = self._placed(rows)

    def heading(self, first: str = "") -> Line:
        """Return the line of titles, with the sort arrow; `first` replaces the first title, as for a group of rows."""
        pieces: list[Piece] = []
        for column, span in self._shown():
            text, role = column.heading, column.title_role
            if first and text:
                text, role, first = first, "strong", ""
            if self._sorting is not None and column.order is not None and column.name == self._sorting.by:
                arrow = self._signs.ascending if self._sorting.reversed else self._signs.descending
                spaced = f"{text} {arrow}"
                text, role = spaced if cell_len(spaced) <= span.width else text + arrow, "accent"
            pieces.append((" " * (span.begin - width_of(pieces)), "text"))
            pieces += self._fitted(((text, role),), span.width, right=column.right)
        return Line(tuple(pieces), cells=tuple(span for _column, span in self._shown() if span.by))

    def line(self, row: Row, key: Hashable = None) -> Line:
        """Return the line of a row; the cursor may be on it if it has a key."""
        return self._line_with(row, [column.cell(row, self._drawing) for column in self._columns], key)

    def lines(self, row: Row, key: Hashable = None) -> list[Line]:
        """Return the line of a row, and below it those on which texts go on that are wrapped."""
        cells = [
            self._wrapped(column, span, cleaned(column.cell(row, self._drawing)))
            for column, span in zip(self._columns, self._spans, strict=True)
        ]
        first, *below = zip_longest(*cells, fillvalue="")
        return [self._line_with(row, first, key), *map(self.line_of, below)]

    def _line_with(self, row: Row, cells: Sequence[Cell], key: Hashable) -> Line:
        """Return the line of a row with these cells."""
        line = self.line_of(cells, marked=self._mark is not None and self._mark(row))
        chosen = tuple(
            span if column.chosen is True else replace(span, selectable=column.chosen(row))
            for column, span in self._shown()
            if column.chosen
        )
        return replace(line, key=key, cells=chosen, selectable=key is not None)

    def _wrapped(self, column: NounField[Row], span: ColumnSpan, cell: Cell) -> list[Cell]:
        """Return the cells of a row's lines: the last piece of a cell goes on below itself."""
        if column.wraps == 1 or not span.width or isinstance(cell, Forms):
            return [cell]
        pieces = (
            ((cell, column.role),)
            if isinstance(cell, str)
            else cell.whole
            if isinstance(cell, Rest)
            else cell
        )
        if not pieces:
            return [cell]
        *before, (text, role) = pieces
        room = (self._drawing.width if isinstance(cell, Rest) else span.end) - span.begin - width_of(before)
        first, *others = wrapped(text, room, column.wraps)
        indent: Piece = (" " * width_of(before), "text")
        lines = [(*before, (first, role)), *((indent, (other, role)) for other in others)]
        return [Rest(line) for line in lines] if isinstance(cell, Rest) else list(lines)

    def line_of(self, cells: Sequence[Cell], *, marked: bool = False) -> Line:
        """Return a line of given cells, one for each column, such as totals; the cursor can't be on it."""
        pieces: list[Piece] = [(f" {self._signs.marked}", "accent")] if marked else []
        used = 2 if marked else 0
        for column, span, cell in zip(self._columns, self._spans, map(cleaned, cells), strict=True):
            if not span.width:
                continue
            pieces.append((" " * (span.begin - used), "text"))
            used = span.end
            if isinstance(cell, Rest):
                forms = (cell.whole, cell.shorter) if cell.shorter else (cell.whole,)
                room = self._drawing.width - span.begin
                shown = next((form for form in forms if width_of(form) <= room), forms[-1])
                pieces += self._fitted(shown, room)
                break
            form = cell.fitting(span.width) if isinstance(cell, Forms) else cell
            form = ((form, column.role),) if isinstance(form, str) else form
            pieces += self._fitted(form, span.width, right=column.right)
        return Line(tuple(pieces))

    def _shown(self) -> list[tuple[NounField[Row], ColumnSpan]]:
        return [(column, span) for column, span in zip(self._columns, self._spans, strict=True) if span.width]

    def _fitted(self, pieces: Pieces, width: int, *, right: bool = False) -> Pieces:
        """Pad or cut pieces to exactly `width` cells."""
        ellipsis = self._signs.ellipsis
        if len(pieces) == 1:
            text, role = pieces[0]
            return ((fit(text, width, right=right, ellipsis=ellipsis), role),)
        fitting = cut(pieces, width, ellipsis)
        padding: Piece = (" " * (width - width_of(fitting)), "text")
        return (padding, *fitting) if right else (*fitting, padding)

    def _placed(self, rows: Sequence[Row]) -> tuple[ColumnSpan, ...]:
        """Return the span of each column; that of a column that is left out is empty."""
        # Cleaned before any width is measured: what is drawn of a control character is wider than nothing.
        cells = [[cleaned(column.cell(row, self._drawing)) for row in rows] for column in self._columns]
        widths = fitted_to_screen(self._columns, cells, self._drawing.width, self._margin)
        used = self._margin
        spans = []
        for column, width in zip(self._columns, widths, strict=True):
            begin = used + (column.gap if used > self._margin else 0) if width else used
            used = begin + width
            by = column.name if column.order is not None else ""
            spans.append(ColumnSpan(min(begin, self._drawing.width), min(used, self._drawing.width), by))
        return tuple(spans)
