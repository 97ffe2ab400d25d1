"""Screens of logs and files: a file of a run, and the logs of several runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from textual.widget import Widget

from mlebench_console.console.logs.following import RunLog, run_logs
from mlebench_console.console.roles import Piece, Pieces, Role
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.screen import ConsoleScreen, Queries
from mlebench_console.console.tui.widgets.blocks import shortened
from mlebench_console.console.tui.widgets.log_view import LogPane
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.foundation.text import plural

# What is said where none of so many logs goes on.
_ENDED = {0: "", 1: ", it has ended"}


class LogScreen(ConsoleScreen):
    """A log view with a title."""

    MODE = "sweep"
    AUTO_FOCUS = "LogView"

    def body(self) -> Iterable[Widget]:
        """Put the title over the log."""
        yield Painted(id="header")
        yield LogPane(id="log")

    def can_do(self, key: Key) -> bool:
        """Return whether a key would do anything now: nothing is found further before there was a search."""
        goes_on = key.id in ("log.next", "log.previous")
        return not goes_on or (self.is_composed() and bool(self.query_one(LogPane).view.searches))

    def is_composed(self) -> bool:
        """Return whether the log view exists too, which is created after its pane."""
        return super().is_composed() and bool(self.query("LogView"))


class FileScreen(LogScreen):
    """A file of an agent, sanitised and with syntax highlighting."""

    CONTEXTS = ("file", "log")

    def __init__(self, path: Path, *, line: int = 0, name: str = "", about: str = "") -> None:
        """Create it without opening the file.

        Args:
            path: of the file.
            line: the line to show; 0 for the beginning.
            name: the name to show if the path has no meaningful one, such as that of a stored object.
            about: what the file is, such as the submission and its score.
        """
        super().__init__()
        self._path = path
        self._line = line
        self._called = name
        self._about = about

    def on_mount(self) -> None:
        """Open it."""
        self.query_one(LogPane).view.show_file(self._path, line=self._line, name=self._called)
        self.redraw()

    def redraw(self) -> None:
        """Draw its name."""
        about: Piece = (f" {self._about}  " if self._about else " ", "strong")
        role: Role = "dim" if self._about else "strong"
        name = self._called or str(self._path)
        self.query_one("#header", Painted).show(shortened(name, role, before=(about,), is_path=True))
        self.query_one(LogPane).redraw()

    def action_copy(self) -> None:
        """Copy the path to the terminal's clipboard."""
        self.app.copy_path(self._path)


class RunLogsScreen(LogScreen):
    """The logs of several runs: the last lines of each, then what they print, each line behind its run."""

    CONTEXTS = ("logs", "log")

    def __init__(self, run_ids: Sequence[int]) -> None:
        super().__init__()
        self._run_ids = tuple(run_ids)
        self._logs: tuple[RunLog, ...] = ()

    def queries(self) -> Queries:
        """Return the query for the logs, which relaunches replace."""
        return {"logs": (lambda database: run_logs(database, self._run_ids), self._take_logs)}

    def redraw(self) -> None:
        """Draw the number of logs."""
        count, going_on = len(self._logs), sum(not log.ending for log in self._logs)
        how = f", {going_on} still printing" if going_on else _ENDED.get(count, ", all have ended")
        header: Pieces = ((f" {plural(count, 'log')}", "strong"), (how, "dim"))
        self.query_one("#header", Painted).show(header)
        self.query_one(LogPane).redraw()

    def _take_logs(self, logs: tuple[RunLog, ...]) -> None:
        self._logs = logs
        self.query_one(LogPane).view.show_several(logs)
