"""Screens of a single log or file: a file of a run, and the merged logs of several runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.logs.merged import Source, sources
from mlebench_console.console.logs.pattern import ERRORS
from mlebench_console.console.logs.reader import last_lines
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import Line, cut, fitting, foreign, foreign_end
from mlebench_console.console.roles import Piece, Pieces, Role, Signs
from mlebench_console.console.tui.keys import Context, Key
from mlebench_console.console.tui.screen import ConsoleScreen, Queries
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.log_view import LogPane
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.run_cell import state_role
from mlebench_console.foundation.text import plural


class LogScreen(ConsoleScreen):
    """A log view with a title."""

    MODE = "sweep"
    AUTO_FOCUS = "LogView"

    def body(self) -> Iterable[Widget]:
        """Put the title over the log."""
        yield Painted(id="header")
        yield LogPane(id="log")

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now: nothing is found further before there was a search."""
        is_idle = key.id in ("log.next", "log.previous") and not (
            self.is_composed() and self.query_one(LogPane).view.searches
        )
        return "" if is_idle else super().label_of(key)

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
        width, about = self.size.width, f" {self._about}  " if self._about else " "
        name = foreign_end(
            self._called or str(self._path), width - len(about) - 1, ellipsis=self.app.signs.ellipsis
        )
        role: Role = "dim" if self._about else "strong"
        self.query_one("#header", Painted).show(((about, "strong"), (name, role)))
        self.query_one(LogPane).redraw()

    def action_copy(self) -> None:
        """Copy the path to the terminal's clipboard."""
        self.app.copy_path(self._path)


class MergedScreen(LogScreen):
    """Several runs' logs merged by time; if that is unknown of one, the last lines of each under its name."""

    CONTEXTS = ("merged", "log")

    def __init__(self, run_ids: Sequence[int]) -> None:
        super().__init__()
        self._run_ids = tuple(run_ids)
        self._sources: tuple[Source, ...] = ()
        # The last lines of each log; None if they are merged.
        self._ends: Sequence[tuple[Source, Sequence[str]]] | None = None

    def body(self) -> Iterable[Widget]:
        """Put the list of ends, which is hidden at first, below the merged log."""
        yield from super().body()
        ends = LineList(id="ends")
        ends.display = False
        yield ends

    def contexts(self) -> tuple[Context, ...]:
        """Return the contexts of the list instead of the log's while it is shown."""
        return self.CONTEXTS if self._ends is None else ("merged", "list")

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now: there is nothing to open where the logs are merged."""
        return "" if key.id == "merged.open" and self._ends is None else super().label_of(key)

    def queries(self) -> Queries:
        """Return the query for the paths of the logs, which a relaunch changes."""
        return {"sources": (lambda database: sources(database, self._run_ids), self._take_sources)}

    def redraw(self) -> None:
        """Draw the number of logs, and the ends where they are not merged."""
        count, header = plural(len(self._sources), "log"), self.query_one("#header", Painted)
        if self._ends is None:
            what = self._sources[0].label if len(self._sources) == 1 else f"{count} by time"
            header.show(((f" {foreign(what, self.size.width - 2).rstrip()}", "strong"),))
            self.query_one(LogPane).redraw()
            return
        why = "  not merged by time: the engine recorded none"
        forms = (f"{why}, those in the lines are the agents' own", why)
        end: Piece = (f" the end of {count}", "strong")
        header.show(fitting([(end, (form, "dim")) for form in forms], self.size.width))
        ends, signs = self.query_one("#ends", LineList), self.app.signs
        # As many lines of each as fit, below its name and above an empty line; long logs get what short ones leave.
        rows = ends.size.height + 1 - 2 * len(self._ends)
        lengths = [max(1, len(printed)) for _source, printed in self._ends]
        enough = (
            most for most in range(_MOST_OF_EACH, 0, -1) if sum(min(most, each) for each in lengths) <= rows
        )
        most = max(_FEWEST_OF_EACH, next(enough, 0))
        lines: list[Line] = []
        for source, printed in self._ends:
            lines += [Line()] if lines else []
            name: Pieces = (
                (f" {signs.rule}{signs.rule} ", "faint"),
                (foreign(source.label, 60).rstrip(), "strong"),
                ("  ", "text"),
            )
            how: Pieces = cut((*name, *_how_it_is(source, signs)), self.size.width - 2, signs.ellipsis)
            lines.append(Line(how, key=source.run_id, selectable=True))
            shown = printed[-most:] or ("nothing has been printed yet",)
            for text in shown:
                looks_bad = ERRORS.first(text.encode()) is not None
                drawn = foreign(text, self.size.width - 6).rstrip()
                lines.append(Line(((f"    {drawn}", "bad" if looks_bad else "dim"),)))
        ends.show(lines)

    def tick(self) -> None:
        """Read the ends again."""
        super().tick()
        if self._ends is not None:
            self._read_ends()

    def action_open(self) -> None:
        """Open the log whose end is under the cursor."""
        run_id = self.query_one("#ends", LineList).key
        if isinstance(run_id, int):
            self.app.show_run(run_id, pane="log")

    def _take_sources(self, found: tuple[Source, ...]) -> None:
        if found == self._sources and self._ends is None:
            self.query_one(LogPane).view.follow(found)
            return
        self._sources = found
        self._read_ends()

    def _read_ends(self) -> None:
        """Show the logs merged, or read the end of each if the times of one are unknown."""
        logs = self._sources

        def read() -> Sequence[tuple[Source, Sequence[str]]] | None:
            if len(logs) < 2 or all(source.has_times for source in logs):
                return None
            return [(source, last_lines(source.log, _MOST_OF_EACH)) for source in logs]

        def take(ends: Sequence[tuple[Source, Sequence[str]]] | None) -> None:
            self._ends = ends
            pane, listed = self.query_one(LogPane), self.query_one("#ends", LineList)
            pane.display, listed.display = ends is None, ends is not None
            if ends is None:
                pane.view.show_merged(logs)
                pane.view.focus()
            else:
                listed.focus()
            self.refresh_frame()
            self.call_after_refresh(self.draw)

        self.in_background(read, take, latest="ends")


def _how_it_is(source: Source, signs: Signs) -> Pieces:
    """Return the sign and the words for how a run has ended and why, or that it goes on."""
    run = source.run
    if source.grows or run is None:
        return ((f"{signs.running} still printing", "running"),)
    if run.failure_class is not None:
        failed: Piece = (f"{signs.failed} {wording.failure(run)}", "bad")
        return (
            failed,
            (f" {signs.dot} ", "faint"),
            (foreign(run.cause or run.failure_text, 400).rstrip(), "text"),
        )
    if run.outcome is not None:
        words = f"{outcome_sign(run.outcome, signs)} {wording.OUTCOME_WORDS[run.outcome]}"
        return ((words, outcome_role(run.outcome)),)
    return ((run.state.value, state_role(run)),)


# How many of a log's last lines are shown at least, and read.
_FEWEST_OF_EACH, _MOST_OF_EACH = 3, 100
