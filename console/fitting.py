"""Widths of columns for a list of any width: which are shown, which are left out, and which are narrowed.

Names (fields that grow up to a limit) are cut last, and empty space is given up first. As long as every name fits,
columns keep their nominal widths, so that nothing moves when figures change. Where that is too wide, room is taken, in
this order, from droppable columns that say nothing in any row, from unused width of the other columns, from the few
names that are longer than most, from droppable columns by their number, and from texts that take the remaining width
(`REST`). Only then are all names cut, the last column first, down to their `width`; if that is not enough, droppable
names are left out and all growing columns are cut.

That is for a screen, which can show nothing else. On a terminal, a command puts what is left out below its row: there
columns are as wide as what is in them; names are cut down to their `width`, and cells get shorter forms, before columns
are left out: texts first, then by their number, then from the last one on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rich.cells import cell_len

from mlebench_console.console.fields import REST, Cell, Columns, Rest, natural, shortest, text_of
from mlebench_console.console.pieces import width_of

# Names are not cut below this width, at which they are unreadable.
_NARROWEST = 8
_SHORTEST_TITLE = 8
# This share of the names must fit before another column is left out, so that a few long names cost no figures.
_MOST_NAMES = 0.9


def fitted_to_screen(
    columns: Columns[Any], cells: Sequence[Sequence[Cell]], width: int, margin: int
) -> list[int]:
    """Return the width of each column for a screen, 0 for one that is left out; `cells` are those of each column."""
    return _Fitting(columns, cells, width, margin).to_screen()


def fitted_to_terminal(columns: Columns[Any], cells: Sequence[Sequence[Cell]], width: int) -> list[int]:
    """Return the width of each column for a command's table, 0 for one that is meant for lines below the rows."""
    return _Fitting(columns, cells, width, 0).to_terminal()


class _Fitting:
    """The widths of columns while they are narrowed and left out."""

    def __init__(
        self, columns: Columns[Any], cells: Sequence[Sequence[Cell]], width: int, margin: int
    ) -> None:
        self._columns = columns
        self._width = width
        self._margin = margin
        self._places = range(len(columns))
        self._names = [place for place in self._places if columns[place].is_name]
        self._texts = [place for place in self._places if columns[place].grows == REST]
        self._droppable = [place for place in self._places if columns[place].drop]
        lengths = [sorted(map(natural, column)) for column in cells]
        self._needed = [each[-1] if each else 0 for each in lengths]
        self._usual = [each[math.ceil(_MOST_NAMES * len(each)) - 1] if each else 0 for each in lengths]
        # What the longest forms need that fit columns of a fixed width.
        self._fixed = [
            max(
                (cell_len(text_of(cell, column.width)) for cell in found if not isinstance(cell, Rest)),
                default=0,
            )
            for column, found in zip(columns, cells, strict=True)
        ]
        self._shortest = [max(map(shortest, column), default=0) for column in cells]
        # A cell that spans others says something of its row.
        self._says_nothing = [
            not any(isinstance(cell, Rest) or not column.says_nothing(text_of(cell)) for cell in found)
            for column, found in zip(columns, cells, strict=True)
        ]
        # What cells need that span all columns after their own.
        self._overlong = {
            place: max(min(width_of(cell.shorter or cell.whole), cell.least or REST) for cell in rests)
            for place, column in enumerate(cells)
            if (rests := [cell for cell in column if isinstance(cell, Rest)])
        }
        self._widths: list[int] = []

    def to_screen(self) -> list[int]:
        """Return the widths for a screen."""
        columns = self._columns
        needed = [
            need if column.grows else fixed
            for column, need, fixed in zip(columns, self._needed, self._fixed, strict=True)
        ]
        self._widths = [
            min(max(column.width, needed[place]), column.grows) if place in self._names else column.width
            for place, column in enumerate(columns)
        ]
        self._leave_out([place for place in self._droppable if self._says_nothing[place]])
        whole = [cell_len(column.heading) + (column.order is not None) for column in columns]
        self._narrow(self._places, lambda place: max(needed[place], whole[place]))
        self._narrow(self._names, lambda place: max(columns[place].width, self._usual[place]))
        # A title that is longer than the cells below it may be cut to its beginning.
        title = [min(each, _SHORTEST_TITLE) for each in whole]
        others = [place for place in self._places if place not in self._names]
        self._narrow(others, lambda place: max(needed[place], title[place]))
        before_rests = self._places[: max(self._overlong, default=0)]
        self._narrow(before_rests, lambda place: max(needed[place], title[place]), self._spare_for_rests)
        self._narrow(
            [place for place in before_rests if place in self._names],
            lambda place: max(columns[place].width, self._usual[place]),
            self._spare_for_rests,
        )
        self._leave_out([place for place in self._droppable if place not in (*self._names, *self._texts)])
        self._narrow(self._texts, lambda _place: _NARROWEST)
        self._leave_out([place for place in self._droppable if place in self._texts])
        self._narrow(self._names, lambda place: columns[place].width)
        self._leave_out(self._droppable)
        self._narrow([place for place in self._places if columns[place].grows], lambda _place: _NARROWEST)
        for most in (
            {place: min(columns[place].grows, needed[place]) for place in self._names},
            {place: column.width for place, column in enumerate(columns)},
            dict.fromkeys(self._texts, REST),
        ):
            for place, width in most.items():
                in_rests = place in before_rests
                self._widen(
                    place, width, min(self._spare(), self._spare_for_rests()) if in_rests else self._spare()
                )
        return self._widths

    def to_terminal(self) -> list[int]:
        """Return the widths for a command's table."""
        columns = self._columns
        needed = [
            max(need, cell_len(column.heading)) for need, column in zip(self._needed, columns, strict=True)
        ]
        self._widths = list(needed)
        self._narrow(self._names, lambda place: columns[place].width)
        self._narrow(self._places, lambda place: max(self._shortest[place], cell_len(columns[place].heading)))
        for which in (self._texts, self._droppable, self._places[1:]):
            self._leave_out(which)
        for place in self._places:
            self._widen(place, needed[place], self._spare())
        return self._widths

    def _spare(self) -> int:
        shown = [place for place in self._places if self._widths[place]]
        gaps = sum(self._columns[place].gap for place in shown[1:])
        return self._width - self._margin - gaps - sum(self._widths[place] for place in shown)

    def _spare_for_rests(self) -> int:
        """Return the room left in rows with a cell that spans all columns after it."""
        found = self._width
        for place, need in self._overlong.items():
            before = [each for each in self._places[:place] if self._widths[each]]
            begin = self._margin + sum(self._widths[each] + self._columns[each].gap for each in before)
            found = min(found, self._width - begin - need)
        return found

    def _narrow(
        self, which: Sequence[int], least: Callable[[int], int], room: Callable[[], int] | None = None
    ) -> None:
        """Narrow columns, the last one first, until everything fits."""
        for place in which[::-1]:
            missing = -(room or self._spare)()
            if self._widths[place] and missing > 0:
                self._widths[place] -= min(missing, max(0, self._widths[place] - least(place)))

    def _leave_out(self, which: Sequence[int]) -> None:
        """Leave out columns by their number, and of one number the last one first, until everything fits."""
        for place in sorted(which, key=lambda place: (-self._columns[place].drop, -place)):
            if self._spare() < 0:
                self._widths[place] = 0

    def _widen(self, place: int, most: int, room: int) -> None:
        if self._widths[place]:
            self._widths[place] += min(max(0, room), max(0, most - self._widths[place]))
