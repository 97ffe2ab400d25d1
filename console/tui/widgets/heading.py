"""The names over a table's columns as a line of its own, which a click can sort by."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message

from console.tui.painting import Line
from console.tui.widgets.painted import Painted


@dataclass
class TitleClicked(Message):
    """Somebody clicked on the name of a column that sorts by something."""

    by: str


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
        by = self._line.title_at(event.x)
        if by:
            self.post_message(TitleClicked(by))
