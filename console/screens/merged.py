"""Several runs' logs as one, by the time at which each line was printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from textual.widget import Widget

from console import wording
from console.logs.merged import Source, sources
from console.tui.keys import bindings
from console.tui.screen import ConsoleScreen
from console.tui.widgets.log_view import LogPane
from console.tui.widgets.painted import Painted
from state.database import Database


class MergedScreen(ConsoleScreen):
    """A log view on several logs."""

    CONTEXTS = ("merged", "log")
    MODE = "sweep"
    BINDINGS = bindings("merged")
    AUTO_FOCUS = "LogView"

    def __init__(self, run_ids: Sequence[int]) -> None:
        super().__init__()
        self._run_ids = tuple(run_ids)
        self._sources: tuple[Source, ...] = ()

    def body(self) -> Iterable[Widget]:
        """What it is, the log."""
        yield Painted(id="header")
        yield LogPane(id="merged")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Where the logs are; a relaunch changes that."""
        return {"sources": (lambda database: sources(database, self._run_ids), self._take_sources)}

    def is_whole(self) -> bool:
        """The view is made after its pane."""
        return super().is_whole() and bool(self.query("LogView"))

    def redraw(self) -> None:
        """Draw how many they are."""
        title = f" {wording.plural(len(self._sources), 'log')} by time"
        self.query_one("#header", Painted).show(((title, "strong"),))

    def action_back(self) -> None:
        """Go back to the sweep."""
        self.app.pop_screen()

    def _take_sources(self, found: tuple[Source, ...]) -> None:
        if found != self._sources:
            self._sources = found
            self.query_one(LogPane).view.show_merged(found)
        self.draw()
