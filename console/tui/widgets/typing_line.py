"""A line to type into that draws no control character, whatever a note, a file's name or the clipboard put into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widgets import Input

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

# One cell, so that the cursor stands where it seems to.
_STANDS_FOR_UNPRINTABLE = "?"


class TypingLine(Input):
    """What of its value can't be printed is drawn as a mark; it leans on how the pinned Textual draws."""

    app: ConsoleApp

    def on_mount(self) -> None:
        """Keep the cursor still: a blinking one costs bytes on every beat."""
        self.cursor_blink = False

    @property
    def _value(self) -> Text:
        mark = self.app.palette.style("mark")
        drawn = Text(no_wrap=True, overflow="ignore", end="")
        for letter in self.value:
            if letter.isprintable():
                drawn.append(letter)
            else:
                drawn.append(_STANDS_FOR_UNPRINTABLE, mark)
        return drawn

    def validate__suggestion(self, found: str) -> str:
        """Suggest nothing that nobody could have typed."""
        return found if found.isprintable() else ""
