"""Tables: a list of columns defines the heading, the cells of each row and their widths.

    columns = [
        Column("run", lambda run: str(run.id), 6, right=True, by="number", role="dim"),
        Column("competition", lambda run: run.competition_id, 24, grows=56, by="name"),
        Column("attempt", lambda run: str(run.attempts), 7, right=True, drop=1),
        Column("what", lambda run: run.failure_text, 10, grows=REST, role="dim"),
    ]
    table = Table(columns, found, width, signs, sorting=sorting, mark=lambda run: run.id in marks)
    line_list.show([table.line(run, key=run.id) for run in found], heading=table.heading())

`LineList` shows the heading above its lines, without scrolling it, and posts `TitleClicked(by)` when a title is
clicked. A list of several tables, or of groups, puts `table.heading(...)` among its lines instead. A table does not
depend on the type of its rows, and does not sort them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rich.cells import cell_len

from mlebench_console.console.pieces import ColumnSpan, Line, cut, foreign, width_of
from mlebench_console.console.roles import Piece, Pieces, Role, Signs
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tables import TextColumn
from mlebench_console.console.views.lists import SortOrder

Row = TypeVar("Row")

# The value of `grows` for a column that takes all the remaining width.
REST = 10_000
# Names are not cut below this width, at which they are unreadable.
_NARROWEST = 8
_SHORTEST_TITLE = 8
# This share of the names must fit before another column is left out, so that a few long names cost no figures.
_MOST_NAMES = 0.9


@dataclass(frozen=True)
class Forms:
    """A cell in several forms, longest first; the longest that fits is drawn, or the last one is cut."""

    forms: Sequence[Pieces]


@dataclass(frozen=True)
class Rest:
    """A cell that spans its own column and all that follow, such as a problem in place of figures.

    Attributes:
        shorter: drawn instead where the pieces don't fit.
        least: the width up to which names are narrowed to make room; beyond it the cell is cut. 0 means its full width.
    """

    pieces: Pieces
    shorter: Pieces = ()
    least: int = 0


# Text is drawn in its column's role; pieces have roles of their own. Both may be untrusted: the table sanitises them.
Cell = str | Pieces | Forms | Rest


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table.

    Attributes:
        title: its title in the heading.
        cell: returns the cell of a row.
        width: its width in cells.
        grows: the width it may grow to if there is room and a row needs it; `REST` takes all the remaining width.
        drop: the order in which columns are left out for lack of room, highest first; 0 is never left out.
        right: whether it is right-aligned.
        role: the role of its text; `title_role` is that of its title.
        gap: the number of empty cells before it.
        by: the sort order that a click on its title selects; none if empty.
        chosen: whether the cursor may choose it, for all rows or by row.
    """

    title: str
    cell: Callable[[Row], Cell]
    width: int
    grows: int = 0
    drop: int = 0
    right: bool = False
    role: Role = "text"
    title_role: Role = "dim"
    gap: int = 2
    by: str = ""
    chosen: bool | Callable[[Row], bool] = False


def column_of(column: TextColumn[Row], width: int, **layout: Any) -> Column[Row]:
    """Return a column made from one that a command prints as well."""
    return Column(column.title, column.text, width, right=column.right, **layout)


class Table(Generic[Row]):
    """Columns fitted to a width.

    Names (columns that grow up to a limit) are cut last, and empty space is given up first. As long as every name fits,
    columns keep their nominal widths, so that nothing moves when figures change. Where that is too wide, room is taken,
    in this order, from droppable columns that are empty in all rows, from unused width of the other columns, from the
    few names that are longer than most, from droppable columns by their number, and from texts that take the remaining
    width (`REST`). Only then are all names cut, the last column first, down to their `width`; if that is not enough,
    droppable names are left out and all growing columns are cut.

    Args:
        columns: from left to right.
        rows: determine the widths; other rows can be drawn too.
        width: of the whole table.
        sorting: the sort order, which the heading shows by an arrow.
        mark: returns whether a row is marked; without it there is no column for marks.
    """

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        rows: Sequence[Row],
        width: int,
        signs: Signs,
        *,
        sorting: SortOrder[Any] | None = None,
        mark: Callable[[Row], bool] | None = None,
    ) -> None:
        self._signs = signs
        self._sorting = sorting
        self._mark = mark
        self._width = width
        self._margin = 2 if mark is None else 3
        self._columns = columns
        self._spans = self._placed(rows)

    def heading(self, first: str = "") -> Line:
        """Return the line of titles, with the sort arrow; `first` replaces the first title, as for a group of rows."""
        pieces: list[Piece] = []
        for column, span in self._shown():
            text, role = column.title, column.title_role
            if first and text:
                text, role, first = first, "strong", ""
            if column.by and self._sorting is not None and column.by == self._sorting.by:
                arrow = self._signs.ascending if self._sorting.reversed else self._signs.descending
                spaced = f"{text} {arrow}"
                text, role = spaced if cell_len(spaced) <= span.width else text + arrow, "accent"
            pieces.append((" " * (span.begin - width_of(pieces)), "text"))
            pieces += self._fitted(((text, role),), span.width, right=column.right)
        return Line(tuple(pieces), cells=tuple(span for _column, span in self._shown() if span.by))

    def line(self, row: Row, key: Hashable = None) -> Line:
        """Return the line of a row; the cursor may be on it if it has a key."""
        marked = self._mark is not None and self._mark(row)
        line = self.line_of([column.cell(row) for column in self._columns], marked=marked)
        chosen = tuple(
            span if column.chosen is True else replace(span, selectable=column.chosen(row))
            for column, span in self._shown()
            if column.chosen
        )
        return replace(line, key=key, cells=chosen, selectable=key is not None)

    def line_of(self, cells: Sequence[Cell], *, marked: bool = False) -> Line:
        """Return a line of given cells, one for each column, such as totals; the cursor can't be on it."""
        pieces: list[Piece] = [(f" {self._signs.marked}", "accent")] if marked else []
        used = 2 if marked else 0
        for column, span, cell in zip(self._columns, self._spans, cells, strict=True):
            if not span.width:
                continue
            pieces.append((" " * (span.begin - used), "text"))
            used = span.end
            if isinstance(cell, Rest):
                forms = (cell.pieces, cell.shorter) if cell.shorter else (cell.pieces,)
                room = self._width - span.begin
                shown = next((form for form in forms if width_of(form) <= room), forms[-1])
                pieces += self._fitted(shown, room)
                break
            if isinstance(cell, str):
                cell = ((cell, column.role),)
            elif isinstance(cell, Forms):
                cell = next((form for form in cell.forms if width_of(form) <= span.width), cell.forms[-1])
            pieces += self._fitted(cell, span.width, right=column.right)
        return Line(tuple(pieces))

    def _shown(self) -> list[tuple[Column[Row], ColumnSpan]]:
        return [(column, span) for column, span in zip(self._columns, self._spans, strict=True) if span.width]

    def _fitted(self, pieces: Pieces, width: int, *, right: bool = False) -> Pieces:
        """Sanitise pieces, and pad or cut them to exactly `width` cells."""
        ellipsis = self._signs.ellipsis
        if len(pieces) == 1:
            text, role = pieces[0]
            return ((foreign(text, width, right=right, ellipsis=ellipsis), role),)
        harmless = tuple((plain(text.replace("\n", " ")), role) for text, role in pieces)
        harmless = cut(harmless, width, ellipsis)
        padding: Piece = (" " * (width - width_of(harmless)), "text")
        return (padding, *harmless) if right else (*harmless, padding)

    def _placed(self, rows: Sequence[Row]) -> tuple[ColumnSpan, ...]:
        """Return the span of each column; that of a column that is left out is empty."""
        widths = self._widths(rows)
        used = self._margin
        spans = []
        for column, width in zip(self._columns, widths, strict=True):
            begin = used + (column.gap if used > self._margin else 0) if width else used
            used = begin + width
            spans.append(ColumnSpan(min(begin, self._width), min(used, self._width), column.by))
        return tuple(spans)

    def _widths(self, rows: Sequence[Row]) -> list[int]:
        """Return the width of each column by the rule of the class; 0 for one that is left out."""
        columns = self._columns
        places = range(len(columns))
        names = [place for place in places if columns[place].width < columns[place].grows < REST]
        texts = [place for place in places if columns[place].grows == REST]
        lengths: list[list[int]] = []
        overlong: dict[int, int] = {}
        for place, column in enumerate(columns):
            cells = [column.cell(row) for row in rows]
            lengths.append(sorted(map(self.natural, cells)))
            rests = [
                min(width_of(cell.shorter or cell.pieces), cell.least or REST)
                for cell in cells
                if isinstance(cell, Rest)
            ]
            if rests:
                overlong[place] = max(rests)
        needed = [each[-1] if each else 0 for each in lengths]
        usual = [each[math.ceil(_MOST_NAMES * len(each)) - 1] if each else 0 for each in lengths]
        widths = [
            min(max(columns[place].width, needed[place]), columns[place].grows)
            if place in names
            else columns[place].width
            for place in places
        ]

        def spare() -> int:
            shown = [place for place in places if widths[place]]
            gaps = sum(columns[place].gap for place in shown[1:])
            return self._width - self._margin - gaps - sum(widths[place] for place in shown)

        def spare_for_rests() -> int:
            """Return the room left in rows with a cell that spans all columns after it."""
            found = self._width
            for place, need in overlong.items():
                before = [each for each in places[:place] if widths[each]]
                begin = self._margin + sum(widths[each] + columns[each].gap for each in before)
                found = min(found, self._width - begin - need)
            return found

        def narrow(
            which: Sequence[int], least: Callable[[int], int], room: Callable[[], int] = spare
        ) -> None:
            """Narrow columns, the last one first, until everything fits."""
            for place in which[::-1]:
                missing = -room()
                if widths[place] and missing > 0:
                    widths[place] -= min(missing, max(0, widths[place] - least(place)))

        def leave_out(which: Sequence[int]) -> None:
            for place in sorted(which, key=lambda place: -columns[place].drop):
                if spare() < 0:
                    widths[place] = 0

        droppable = [place for place in places if columns[place].drop]
        leave_out([place for place in droppable if not needed[place]])
        whole = [cell_len(column.title) + bool(column.by) for column in columns]
        narrow(places, lambda place: min(widths[place], max(needed[place], whole[place])))
        narrow(names, lambda place: max(columns[place].width, usual[place]))
        # A title that is longer than the cells below it may be cut to its beginning.
        title = [min(each, _SHORTEST_TITLE) for each in whole]
        others = [place for place in places if place not in names]
        narrow(others, lambda place: min(widths[place], max(needed[place], title[place])))
        before_rests = places[: max(overlong, default=0)]
        narrow(
            before_rests, lambda place: min(widths[place], max(needed[place], title[place])), spare_for_rests
        )
        narrow(
            [place for place in before_rests if place in names],
            lambda place: max(columns[place].width, usual[place]),
            spare_for_rests,
        )
        leave_out([place for place in droppable if place not in (*names, *texts)])
        narrow(texts, lambda _place: _NARROWEST)
        leave_out([place for place in droppable if place in texts])
        narrow(names, lambda place: columns[place].width)
        leave_out(droppable)
        narrow([place for place in places if columns[place].grows], lambda _place: _NARROWEST)
        for most in (
            {place: min(columns[place].grows, needed[place]) for place in names},
            {place: column.width for place, column in enumerate(columns)},
            dict.fromkeys(texts, REST),
        ):
            for place, width in most.items():
                if widths[place]:
                    room = min(spare(), spare_for_rests()) if place in before_rests else spare()
                    widths[place] += min(max(0, room), max(0, width - widths[place]))
        return widths

    @staticmethod
    def natural(cell: Cell) -> int:
        """Return the natural width of a cell."""
        if isinstance(cell, str):
            return cell_len(cell)
        if isinstance(cell, Forms):
            return width_of(cell.forms[0])
        return 0 if isinstance(cell, Rest) else width_of(cell)
