"""The run screen: one run's log, attempts, submissions, resources, files and configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from textual.containers import Container
from textual.widget import Widget

from console.actions import runs
from console.screens import run_config, run_curves, run_lines
from console.screens.classify import open_classify
from console.screens.file import FileScreen
from console.tui.keys import Context, bindings
from console.tui.painting import Line
from console.tui.screen import ConsoleScreen
from console.tui.widgets.line_list import LineList
from console.tui.widgets.log_view import LogPane
from console.tui.widgets.painted import Painted
from console.views.run import (
    MOST_ENTRIES,
    Listing,
    RunFacts,
    Usage,
    read_listing,
    read_order,
    read_usage,
    run_facts,
)
from environment.runner.protocol import Order
from state.database import Database


class RunScreen(ConsoleScreen):
    """Facts at the top, one of six panes below."""

    CONTEXTS = ("run", "log")
    MODE = "sweep"
    BINDINGS = bindings("run")
    AUTO_FOCUS = ""

    def __init__(self, run_id: int, *, pane: str = "log") -> None:
        super().__init__()
        self._run_id = run_id
        self._pane = pane
        self._facts: RunFacts | None = None
        self._listing = Listing()
        self._usage: Usage | None = None
        self._order: Order | None = None

    def body(self) -> Iterable[Widget]:
        """Header, names of the panes, the log or a list."""
        yield Painted(id="header")
        yield Painted(id="panes")
        with Container(id="body"):
            yield LogPane(id="log")
            yield LineList(id="list")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """The facts of this run."""
        return {"facts": (lambda database: run_facts(database, self._run_id), self._take)}

    def contexts(self) -> tuple[Context, ...]:
        """The log has keys that a list has not."""
        return ("run", "log") if self._pane == "log" else ("run", "list")

    def on_mount(self) -> None:
        """Open on the wanted pane."""
        self._show_pane(self._pane)

    def is_whole(self) -> bool:
        """The view is made after its pane."""
        return super().is_whole() and bool(self.query("LogView"))

    def redraw_every(self) -> float:
        """A run of minutes is watched by the second."""
        return self.seconds_between(self._facts.sweep.spec.time_limit_seconds if self._facts else None)

    def beat(self) -> None:
        """Draw again, and measure again what grows."""
        super().beat()
        if self._pane == "resources" and self._facts is not None and self._facts.run.is_live:
            self._fetch()

    def redraw(self) -> None:
        """Draw the facts and the pane as they are now."""
        facts = self._facts
        if facts is None:
            return
        width = self.size.width
        header = run_lines.header(facts, width, self.app.now(), self.app.signs)
        self.query_one("#header", Painted).show(*header)
        self.query_one("#panes", Painted).show(run_lines.panes(self._pane, width, self.app.signs))
        if self._pane == "log":
            self.query_one(LogPane).draw_status()
        else:
            self.query_one("#list", LineList).show(self._lines(facts))

    def on_line_list_opened(self) -> None:
        """Open the file or snapshot under the cursor."""
        self.action_open()

    def action_open(self) -> None:
        """Open the file or snapshot under the cursor."""
        facts, key = self._facts, self.query_one("#list", LineList).key
        if facts is None:
            return
        if self._pane == "files" and isinstance(key, str):
            kind = next((entry.kind for entry in self._listing.entries if entry.path == key), "")
            if kind == "file":
                self.app.push_screen(FileScreen(Path(key)))
            else:
                self.app.say(f"a {kind} can't be opened" if kind else "that file is gone")
        elif self._pane == "submissions":
            for each in facts.submissions:
                if each.id == key:
                    self.app.push_screen(FileScreen(facts.state_dir / each.path))

    def action_next_pane(self) -> None:
        """Show the next pane."""
        self._step_pane(1)

    def action_previous_pane(self) -> None:
        """Show the pane before."""
        self._step_pane(-1)

    def action_relaunch(self) -> None:
        """Relaunch this run."""
        if self._facts is not None:
            self.app.act(runs.relaunch, [self._facts.run])

    def action_stop(self) -> None:
        """Stop this run."""
        if self._facts is not None:
            self.app.act(runs.stop, [self._facts.run])

    def action_classify(self) -> None:
        """Correct the class of this run's failure."""
        if self._facts is not None:
            open_classify(self.app, [self._facts.run])

    def action_copy(self) -> None:
        """Copy the path of the run's directory to the terminal's clipboard."""
        if self._facts is not None and self._facts.directory is not None:
            self.app.copy_path(self._facts.directory)

    def action_back(self) -> None:
        """Go back to where one came from."""
        self.app.pop_screen()

    def _step_pane(self, step: int) -> None:
        names = run_lines.PANES
        self._show_pane(names[(names.index(self._pane) + step) % len(names)])

    def _show_pane(self, pane: str) -> None:
        self._pane = pane
        log, lines = self.query_one(LogPane), self.query_one("#list", LineList)
        log.display = pane == "log"
        lines.display = pane != "log"
        (log.view if pane == "log" else lines).focus()
        self._fetch()
        lines.scroll_to(y=0, animate=False)
        self.redraw()
        self.refresh_frame()

    def _take(self, facts: RunFacts) -> None:
        other = self._facts is None or self._facts.directory != facts.directory
        self._facts = facts
        self.query_one(LogPane).view.show(facts.log)
        if other:
            self._usage, self._order = None, None
            self._fetch()
        self.redraw()

    def _lines(self, facts: RunFacts) -> list[Line]:
        shown = self.query_one("#list", LineList)
        width = shown.scrollable_content_region.width or self.size.width
        height, now, signs = shown.size.height, self.app.now(), self.app.signs
        if self._pane == "timeline":
            return run_lines.timeline(facts, width)
        if self._pane == "submissions":
            drawn = run_curves.score_chart(facts, width - 2, max(5, min(14, height // 2 - 3)), now, signs)
            return [*drawn, *run_lines.submissions(facts, width, signs)]
        if self._pane == "resources":
            return run_curves.resources(facts, self._usage, width - 2, height, now, signs)
        if self._pane == "files":
            note = f"only the first {MOST_ENTRIES} are shown" if self._listing.is_cut else ""
            return run_lines.files(self._listing.entries, note, width)
        return run_config.config(facts, self._order, width)

    def _fetch(self) -> None:
        """Read in a thread what the pane shows from files."""
        work: dict[str, tuple[Callable[[RunFacts], Any], Callable[[Any], None]]] = {
            "files": (read_listing, self._take_listing),
            "resources": (read_usage, self._take_usage),
            "config": (read_order, self._take_order),
        }
        if self._facts is not None and self._pane in work:
            read, take = work[self._pane]
            self.in_background(partial(read, self._facts), take)

    def _take_listing(self, found: Listing) -> None:
        self._listing = found
        self.draw()

    def _take_usage(self, found: Usage) -> None:
        self._usage = found
        self.draw()

    def _take_order(self, found: Order | None) -> None:
        self._order = found
        self.draw()
