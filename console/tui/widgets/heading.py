"""The names over a table's columns as a line of its own, which a click can sort by."""

from __future__ import annotations

from textual import events

from console.tui.painting import Line
from console.tui.widgets.line_list import TitleClicked
from console.tui.widgets.painted import Painted


class Heading(Painted):
    """One line of names."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._line = Line()

    def show_line(self, line: Line) -> None:
        """Show these names."""
        self._line = line
        self.show(line.pieces)

    def on_click(self, event: events.Click) -> None:
        """Tell whose name was clicked on."""
        by = self._line.sorts_by(event.x)
        if by:
            self.post_message(TitleClicked(by))
