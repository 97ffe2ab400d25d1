"""The run screen: one run's log, attempts, submissions, files and configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textual.containers import Container
from textual.widget import Widget

from console.keys import Context, bindings
from console.model import files
from console.model.run_facts import RunFacts, run_facts
from console.painting import Line
from console.screens import acting, run_lines
from console.screens.base import ConsoleScreen
from console.widgets.line_list import LineList
from console.widgets.log_view import LogView
from console.widgets.painted import Painted
from console.widgets.prompt import Prompt
from state.database import Database


class RunScreen(ConsoleScreen):
    """Facts at the top, one of five panes below."""

    CONTEXTS = ("run", "log")
    MODE = "sweep"
    BINDINGS = bindings("run")
    AUTO_FOCUS = ""

    def __init__(self, run_id: int, *, pane: str = "log") -> None:
        super().__init__()
        self._run_id = run_id
        self._pane = pane
        self._facts: RunFacts | None = None
        self._files: tuple[files.Entry, ...] = ()
        self._files_note = ""

    def body(self) -> Iterable[Widget]:
        """Header, names of the panes, the log or a list."""
        yield Painted(id="header")
        yield Painted(id="panes")
        with Container(id="body"):
            yield LogView(id="log")
            yield LineList(id="list")
        yield Painted(id="log-status")
        yield Prompt("/", "a regular expression; small letters match large ones too", id="search")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """The facts of this run."""
        return {
            "facts": (
                lambda database: run_facts(database, self._run_id),
                self._take,
            )
        }

    def contexts(self) -> tuple[Context, ...]:
        """The log has keys that a list has not."""
        return ("run", "log") if self._pane == "log" else ("run", "list")

    def on_mount(self) -> None:
        """Open on the wanted pane."""
        self._show_pane(self._pane)

    def redraw_every(self) -> float:
        """A run of minutes is watched by the second."""
        return self.seconds_between(self._facts.sweep.spec.time_limit_seconds if self._facts else None)

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
            self._draw_log_status()
        else:
            self.query_one("#list", LineList).show(self._lines(facts))

    def on_log_view_told(self) -> None:
        """Tell where the log view is."""
        self._draw_log_status()

    def on_log_view_search_wanted(self) -> None:
        """Let a search be typed."""
        self.query_one(Prompt).open("")

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Search."""
        log = self.query_one(LogView)
        log.focus()
        if message.value and (wrong := log.search(message.value)):
            self.app.say(wrong, bad=True)

    def on_prompt_left(self) -> None:
        """Search for nothing."""
        self.query_one(LogView).focus()

    def action_next_pane(self) -> None:
        """Show the next pane."""
        self._step_pane(1)

    def action_previous_pane(self) -> None:
        """Show the pane before."""
        self._step_pane(-1)

    def action_relaunch(self) -> None:
        """Relaunch this run."""
        if self._facts is not None:
            acting.relaunch(self.app, [self._facts.run])

    def action_stop(self) -> None:
        """Stop this run."""
        if self._facts is not None:
            acting.stop(self.app, [self._facts.run])

    def action_copy(self) -> None:
        """Copy the path of the run's directory to the terminal's clipboard."""
        if self._facts is not None and self._facts.directory is not None:
            self.app.copy_to_clipboard(str(self._facts.directory))
            self.app.say(f"copied {self._facts.directory}")

    def action_back(self) -> None:
        """Go back to where one came from."""
        self.app.pop_screen()

    def _step_pane(self, step: int) -> None:
        names = run_lines.PANES
        self._show_pane(names[(names.index(self._pane) + step) % len(names)])

    def _show_pane(self, pane: str) -> None:
        self._pane = pane
        log, lines = self.query_one(LogView), self.query_one("#list", LineList)
        log.display = pane == "log"
        lines.display = pane != "log"
        self.query_one("#log-status").display = pane == "log"
        (log if pane == "log" else lines).focus()
        if pane == "files":
            self._list_files()
        lines.scroll_to(y=0, animate=False)
        self.redraw()
        self.refresh_frame()

    def _take(self, facts: RunFacts) -> None:
        self._facts = facts
        self.query_one(LogView).show(facts.log)
        self.redraw()

    def _lines(self, facts: RunFacts) -> list[Line]:
        width = self.query_one("#list").scrollable_content_region.width or self.size.width
        if self._pane == "timeline":
            return run_lines.timeline(facts, width)
        if self._pane == "submissions":
            return run_lines.submissions(facts, width, self.app.signs)
        if self._pane == "files":
            return run_lines.files(self._files, self._files_note, width)
        return run_lines.config(facts, width)

    def _list_files(self) -> None:
        if self._facts is not None and self._facts.directory is not None:
            self.app.in_thread(partial(files.listing, self._facts.directory), self._take_files)

    def _take_files(self, found: tuple[tuple[files.Entry, ...], bool]) -> None:
        self._files, more = found
        self._files_note = f"only the first {files.MOST_ENTRIES} are shown" if more else ""
        self.draw()

    def _draw_log_status(self) -> None:
        if self.is_whole():
            self.query_one("#log-status", Painted).show(self.query_one(LogView).status(self.size.width))
