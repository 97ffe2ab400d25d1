"""Screens of a single log or file: a file of a run, and the merged logs of several runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from textual.widget import Widget

from console import wording
from console.logs.merged import Source, sources
from console.tui.painting import foreign_end
from console.tui.screen import ConsoleScreen, Queries
from console.tui.widgets.log_view import LogPane
from console.tui.widgets.painted import Painted


class LogScreen(ConsoleScreen):
    """A log view with a title."""

    MODE = "sweep"
    AUTO_FOCUS = "LogView"

    def body(self) -> Iterable[Widget]:
        """Put the title over the log."""
        yield Painted(id="header")
        yield LogPane(id="log")

    def is_composed(self) -> bool:
        """Return whether the log view exists too, which is created after its pane."""
        return super().is_composed() and bool(self.query("LogView"))


class FileScreen(LogScreen):
    """A file of an agent, sanitised and with syntax highlighting."""

    CONTEXTS = ("file", "log")

    def __init__(self, path: Path, *, line: int = 0, name: str = "") -> None:
        """Create it without opening the file.

        Args:
            path: of the file.
            line: the line to show; 0 for the beginning.
            name: the name to show if the path has no meaningful one, such as that of a stored object.
        """
        super().__init__()
        self._path = path
        self._line = line
        self._called = name

    def on_mount(self) -> None:
        """Open it."""
        self.query_one(LogPane).view.show_file(self._path, line=self._line, name=self._called)
        self.redraw()

    def redraw(self) -> None:
        """Draw its name."""
        name = foreign_end(
            self._called or str(self._path), self.size.width - 2, ellipsis=self.app.signs.ellipsis
        )
        self.query_one("#header", Painted).show(((" ", "text"), (name, "strong")))
        self.query_one(LogPane).draw_status()

    def action_copy(self) -> None:
        """Copy the path to the terminal's clipboard."""
        self.app.copy_path(self._path)


class MergedScreen(LogScreen):
    """Several runs' logs merged by time."""

    CONTEXTS = ("merged", "log")

    def __init__(self, run_ids: Sequence[int]) -> None:
        super().__init__()
        self._run_ids = tuple(run_ids)
        self._sources: tuple[Source, ...] = ()

    def queries(self) -> Queries:
        """Return the query for the paths of the logs, which a relaunch changes."""
        return {"sources": (lambda database: sources(database, self._run_ids), self._take_sources)}

    def redraw(self) -> None:
        """Draw the number of logs."""
        title = f" {wording.plural(len(self._sources), 'log')} by time"
        self.query_one("#header", Painted).show(((title, "strong"),))
        self.query_one(LogPane).draw_status()

    def _take_sources(self, found: tuple[Source, ...]) -> None:
        if found != self._sources:
            self._sources = found
            self.query_one(LogPane).view.show_merged(found)
        else:
            self.query_one(LogPane).view.follow(found)
