"""The scoreboard screen: own experiments among the published rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.widget import Widget

from console.keys import bindings
from console.screens import board_lines
from console.screens.base import ConsoleScreen
from console.screens.board_lines import Order
from console.widgets.line_list import LineList
from console.widgets.painted import Painted
from engine.scoreboard import Row, own_rows, published_rows
from state.database import Database


class BoardScreen(ConsoleScreen):
    """A sorted table of rows; what covers a split only in part says how much of it, and no number."""

    CONTEXTS = ("board", "list")
    MODE = "board"
    BINDINGS = bindings("board")

    def __init__(self) -> None:
        super().__init__()
        self._own: tuple[Row, ...] = ()
        self._order = Order()

    def body(self) -> Iterable[Widget]:
        """Own rows in short, the heading, the table."""
        yield Painted(id="header")
        yield Painted(id="columns")
        yield LineList(id="rows")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Own rows; the published ones come with the program."""
        return {"own": (own_rows, self._take)}

    def redraw(self) -> None:
        """Draw the table in its order."""
        rows = self.query_one("#rows", LineList)
        width = rows.scrollable_content_region.width or self.size.width
        signs = self.app.signs
        summary = board_lines.own_summary(self._own, self.size.width, signs)
        self.query_one("#header", Painted).show(*summary, *(((),) if summary else ()))
        self.query_one("#columns", Painted).show(board_lines.heading(self._order, width, signs))
        rows.show(board_lines.lines((*self._own, *published_rows()), self._order, width, signs))

    def action_sort(self) -> None:
        """Sort by the next column."""
        place = board_lines.SORTS.index(self._order.column)
        self._order = Order(board_lines.SORTS[(place + 1) % len(board_lines.SORTS)], self._order.turned)
        self.redraw()

    def action_turn(self) -> None:
        """Turn the order round."""
        self._order = Order(self._order.column, not self._order.turned)
        self.redraw()

    def _take(self, rows: tuple[Row, ...]) -> None:
        self._own = rows
        self.redraw()
