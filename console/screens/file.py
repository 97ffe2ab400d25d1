"""One file of a run, of any size, as the agent left it: harmless, with the colours of its language."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual.widget import Widget

from console.tui.keys import bindings
from console.tui.painting import foreign
from console.tui.screen import ConsoleScreen
from console.tui.widgets.log_view import LogPane
from console.tui.widgets.painted import Painted


class FileScreen(ConsoleScreen):
    """A name and what is in it."""

    CONTEXTS = ("file", "log")
    MODE = "sweep"
    BINDINGS = bindings("file")
    AUTO_FOCUS = "LogView"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def body(self) -> Iterable[Widget]:
        """The name, the file."""
        yield Painted(id="header")
        yield LogPane(id="file")

    def on_mount(self) -> None:
        """Open it."""
        self.query_one(LogPane).view.show_file(self._path)
        self.redraw()

    def is_whole(self) -> bool:
        """The view is made after its pane."""
        return super().is_whole() and bool(self.query("LogView"))

    def redraw(self) -> None:
        """Draw its name."""
        name = foreign(str(self._path), self.size.width - 2, ellipsis=self.app.signs.ellipsis)
        self.query_one("#header", Painted).show(((" ", "text"), (name.rstrip(), "strong")))
        self.query_one(LogPane).draw_status()

    def action_copy(self) -> None:
        """Copy the path to the terminal's clipboard."""
        self.app.copy_path(self._path)

    def action_back(self) -> None:
        """Go back to the run."""
        self.app.pop_screen()
