"""The overview screen: is everything all right, and if not, where to go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.widget import Widget

from console.actions import runs
from console.screens import overview_lines
from console.screens.overview_lines import Target
from console.tui.keys import bindings
from console.tui.screen import ConsoleScreen
from console.tui.widgets.line_list import LineList
from console.views.overview import Overview, concerns, overview
from engine.notifications.news import troubles
from state.database import Database
from state.records import Run


class OverviewScreen(ConsoleScreen):
    """One list: sweeps, what needs a person, what happened lately."""

    CONTEXTS = ("overview", "list")
    MODE = "overview"
    REMEMBERED_AS = "overview"
    BINDINGS = bindings("overview")

    def __init__(self) -> None:
        super().__init__()
        self._found: Overview | None = None

    def body(self) -> Iterable[Widget]:
        """The list."""
        yield LineList(id="all")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Everything at a glance."""
        return {"overview": (overview, self._take)}

    def redraw(self) -> None:
        """Draw it as it is at this moment."""
        if self._found is None:
            return
        shown = self.query_one("#all", LineList)
        width, now = shown.scrollable_content_region.width or self.size.width, self.app.now()
        needed = concerns(self._found, now)
        of_host = troubles(self.app.engine)
        height, signs = shown.size.height, self.app.signs
        shown.show(overview_lines.lines(self._found, needed, of_host, width, height, now, signs))

    def on_line_list_opened(self) -> None:
        """Go to what the line is about."""
        self.action_open()

    def action_open(self) -> None:
        """Go to what the line is about."""
        target = self._target()
        if target is None:
            return
        if target.place == "run" and target.run_id is not None:
            self.app.show_run(target.run_id)
        elif target.place == "sweep":
            self.app.show_sweep(target.sweep_id)
        else:
            self.app.show(target.place)

    def action_log(self) -> None:
        """Open the log of the run of the line."""
        run = self._run()
        if run is not None:
            self.app.show_run(run.id, pane="log")

    def action_relaunch(self) -> None:
        """Relaunch the failed run of the line."""
        run = self._run()
        if run is not None:
            self.app.act(runs.relaunch, [run])

    def _take(self, found: Overview) -> None:
        self._found = found
        self.app.known_sweeps = tuple(line.sweep.id for line in found.sweeps)
        self.redraw()

    def _target(self) -> Target | None:
        key = self.query_one(LineList).key
        if isinstance(key, tuple):
            key = key[0]
        return key if isinstance(key, Target) else None

    def _run(self) -> Run | None:
        target = self._target()
        if target is None or target.run_id is None or self._found is None:
            return None
        known = [concern.run for concern in concerns(self._found, self.app.now())]
        known += self._found.competition_of.values()
        return next((run for run in known if run.id == target.run_id), None)
