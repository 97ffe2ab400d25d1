"""The run screen: the header, one of seven panes, and beside it what the pane does not show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.containers import Horizontal
from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.actions import run as run_actions
from mlebench_console.console.actions.action import applies
from mlebench_console.console.pieces import Line, width_of
from mlebench_console.console.roles import Drawing, Piece, Pieces
from mlebench_console.console.screens.logs import LogScreen
from mlebench_console.console.screens.run.calls import CallsPane
from mlebench_console.console.screens.run.configuration import ConfigurationPane, configuration_blocks
from mlebench_console.console.screens.run.files import FilesPane
from mlebench_console.console.screens.run.header import header
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.screens.run.resources import ResourcesPane
from mlebench_console.console.screens.run.submissions import MOST_CHART_ROWS, SubmissionsPane
from mlebench_console.console.screens.run.summary import (
    CHART_ROWS,
    FEWEST_LOG_LINES,
    SAID_ABOVE,
    RunFiles,
    evidence,
    log_end,
    read_files,
    stacked,
    summary_parts,
)
from mlebench_console.console.screens.run.timeline import NoLogPane, TimelinePane, happened
from mlebench_console.console.tui.keys import Context, Key
from mlebench_console.console.tui.screen import NOT_READ, Queries
from mlebench_console.console.tui.widgets.blocks import Block, laid_out, section, wrapped
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.log_view import LogPane
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.views.run import RunFacts, run_facts
from mlebench_console.state.records import Run, Submission, Sweep
from mlebench_console.state.transitions import is_reroll

if TYPE_CHECKING:
    from mlebench_console.state.database import Database


_PANES: tuple[type[Pane], ...] = (
    NoLogPane,
    TimelinePane,
    SubmissionsPane,
    ResourcesPane,
    CallsPane,
    FilesPane,
    ConfigurationPane,
)
# The width from which a column beside the pane shows the rest of the run, its least and greatest width, and how wide
# the pane is before the column grows.
_SIDE_FROM = 150
_SIDE_WIDTHS = (56, 84)
_PANE_WIDTH = 116


class RunScreen(LogScreen):
    """The run's data at the top, one of seven panes below."""

    CONTEXTS = ("run", "submissions", "log")
    VERTICAL_BREAKPOINTS = [(0, "-low"), (36, "-tall")]  # noqa: RUF012  # as the base class declares it
    OWN_CONTEXTS = 2
    AUTO_FOCUS = ""

    def __init__(self, run_id: int, *, pane: str = "log") -> None:
        super().__init__()
        self._run_id = run_id
        self._panes = {kind.name: kind() for kind in _PANES}
        self._pane = self._panes[pane]
        self._facts: RunFacts | None = None
        self._files: RunFiles | None = None
        self._log_is_below = False

    def body(self) -> Iterable[Widget]:
        """Return the header, the names of the panes, the log or a list, and what a wide terminal shows beside it."""
        yield Painted(id="header")
        yield Painted(id="panes")
        with Horizontal(id="body"):
            yield LogPane(id="log")
            yield LineList(id="list")
            yield Painted(id="side")

    def queries(self) -> Queries:
        """Return the query for this run."""

        def ask(database: Database) -> RunFacts:
            return run_facts(database, self._run_id, self.app.places.config_file, self.app.now())

        return {"facts": (ask, self._take)}

    def chosen_runs(self) -> Sequence[Run]:
        """This run."""
        return (self._facts.run,) if self._facts is not None else ()

    def chosen_sweep(self) -> Sweep | None:
        """The sweep of this run."""
        return self._facts.sweep if self._facts is not None else None

    def contexts(self) -> tuple[Context, ...]:
        """Return the keys of the run and of the pane."""
        return ("run", *(self._pane.keys if self._shows_log or self._pane.name != "log" else ("list",)))

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty if it would do nothing."""
        if key.id == "run.relaunch" and self.can_do(key) and self._facts is not None:
            return "re-roll" if is_reroll(self._facts.run) else "relaunch (free)"
        return super().label_of(key)

    def can_do(self, key: Key) -> bool:
        """Return whether a key applies to this run as it is, and to the pane."""
        facts = self._facts
        if facts is None:
            return key.context == "app" or key.id in ("run.next", "run.back")
        can = {
            "run.relaunch": lambda: applies(run_actions.relaunch, [facts.run]),
            "run.stop": lambda: applies(run_actions.stop, [facts.run]),
            "run.classify": lambda: facts.run.failure_class is not None,
            "run.open": lambda: self._pane.opens(facts),
            "run.code": lambda: facts.attempt is not None and facts.attempt.started_at is not None,
            "run.diff": lambda: self._pane.can_compare(facts),
            "submissions.mark": lambda: len(facts.submissions) > 1,
        }.get(key.id)
        return super().can_do(key) and (can is None or can())

    def on_mount(self) -> None:
        """Open the requested pane."""
        self._show_pane(self._pane.name)

    def tick_seconds(self) -> float:
        """Return a shorter interval for runs with a short time limit."""
        return self.tick_seconds_within(
            self._facts.sweep.conditions.time_limit_seconds if self._facts else None
        )

    def tick(self) -> None:
        """Redraw, and read growing files again."""
        super().tick()
        if self._facts is not None and self._facts.run.is_live:
            if self._pane.is_growing:
                self._fetch()
            self._read_files(self._facts)

    def redraw(self) -> None:
        """Draw the header and the pane."""
        facts = self._facts
        if facts is None:
            return
        self.query_one("#header", Painted).show(*header(facts, self.app.engine, self.app.drawing))
        self.query_one("#panes", Painted).show(partial(_pane_names, self._pane.name))
        if self._shows_log:
            self.query_one(LogPane).redraw()
        else:
            self._log_is_below = False
            shown = self.query_one("#list", LineList)
            view = PaneView(facts, self.app.engine, shown.size.height, self.app.drawing)
            shown.show([partial(self._pane_and_log, view)])
        self._draw_side(facts)

    def action_open(self) -> None:
        """Open what is under the cursor of the pane."""
        if self._facts is not None:
            self._pane.open(self.app, self._facts, self._key)

    def action_code(self) -> None:
        """Open the code at the submission under the cursor, or at the best one."""
        from mlebench_console.console.screens.code import CodeScreen
        from mlebench_console.console.views.code import Wanted

        if self._facts is not None and self._facts.attempt is not None:
            chosen = self._submission()
            which = "" if chosen is None else str(chosen.sequence)
            self.app.push_screen(CodeScreen(Wanted(self._run_id, self._facts.attempt.number, which)))
        else:
            self.app.say(self._why_no_attempt())

    def action_mark(self) -> None:
        """Mark the submission under the cursor, or remove its mark."""
        chosen = self._submission()
        if chosen is not None and isinstance(self._pane, SubmissionsPane):
            self._pane.marks = self._pane.marks.toggled(chosen.id)
            self.redraw()

    def action_diff(self) -> None:
        """Compare two submissions, or on the timeline an attempt with the previous one."""
        from mlebench_console.console.screens.code import DiffScreen

        if self._facts is None or self._facts.attempt is None:
            self.app.say(self._why_no_attempt())
            return
        versions = self._pane.versions(self._facts, self._key)
        if isinstance(versions, str):
            self.app.say(versions)
        else:
            self.app.push_screen(DiffScreen(*versions))

    def action_pane(self, step: int) -> None:
        """Show the next or previous pane."""
        names = list(self._panes)
        self._show_pane(names[(names.index(self._pane.name) + step) % len(names)])

    def action_copy(self) -> None:
        """Copy the path of the run's directory to the terminal's clipboard."""
        if self._facts is not None and self._facts.directory is not None:
            self.app.copy_path(self._facts.directory)

    @property
    def _key(self) -> object:
        """The key under the cursor of the list."""
        return self.query_one("#list", LineList).key

    def _submission(self) -> Submission | None:
        """The submission under the cursor."""
        return None if self._facts is None else self._pane.submission(self._facts, self._key)

    def _why_no_attempt(self) -> str:
        return "the run was never launched" if self._facts is not None else NOT_READ

    @property
    def _shows_log(self) -> bool:
        """Whether the log is shown, rather than a list; a run that was never launched has none."""
        return self._pane.name == "log" and (self._facts is None or self._facts.attempt is not None)

    def _show_pane(self, name: str) -> None:
        self._pane = self._panes[name]
        self._show_log_or_list()
        self._fetch()
        self.query_one("#list", LineList).scroll_to(y=0, animate=False)
        self.redraw()
        self.refresh_frame()
        # A list that was hidden has its size after the next layout only.
        self.call_after_refresh(self.draw)

    def _show_log_or_list(self) -> None:
        log, lines = self.query_one(LogPane), self.query_one("#list", LineList)
        log.display = self._shows_log
        lines.display = not self._shows_log
        (log.view if self._shows_log else lines).focus()

    def _take(self, facts: RunFacts) -> None:
        before, self._facts = self._facts, facts
        self.query_one(LogPane).view.show(
            facts.log, grows=facts.attempt is not None and facts.attempt.ended_at is None
        )
        if before is None or before.directory != facts.directory:
            self._panes = {kind.name: kind() for kind in _PANES}
            self._pane, self._files = self._panes[self._pane.name], None
            self._show_log_or_list()
            self._fetch()
        if before != facts:
            self.refresh_frame()
            self._read_files(facts)

    def _read_files(self, facts: RunFacts) -> None:
        """Read the data of files that are shown beside or below the pane."""

        def take(files: RunFiles) -> None:
            self._files = files
            self.draw()

        if facts.directory is not None:
            self.in_background(partial(read_files, facts), take, latest="files")

    @property
    def _has_side(self) -> bool:
        """Whether there is something to show beside the pane, and room for it."""
        return self.size.width >= _SIDE_FROM and self._facts is not None

    def _draw_side(self, facts: RunFacts) -> None:
        """Draw what the pane does not show beside it, where the terminal is wide enough."""
        side = self.query_one("#side", Painted)
        side.display = self._has_side
        side.set_class(self.app.settings.ascii_only, "-ascii")
        narrowest, widest = _SIDE_WIDTHS
        side.styles.width = min(widest, max(narrowest, self.size.width - _PANE_WIDTH))
        if side.display:
            side.show(partial(self._beside, facts, self.query_one("#body").size.height))

    def _beside(self, facts: RunFacts, height: int, drawing: Drawing) -> list[Line]:
        """Draw the parts of the run that the pane does not show, its events or log, and its configuration."""
        # Where the log is not beside the pane, the chart has its room.
        name = self._pane.name
        rows = MOST_CHART_ROWS if name == "log" or self._log_is_below else CHART_ROWS
        parts = summary_parts(facts, self._files, self.app.engine, height, drawing, chart_rows=rows)
        # The header has the cause, unless it was cut there.
        is_cut = len(facts.run.failure_text) + len(wording.failure(facts.run)) > self.size.width - 8
        parts["cause"] = [wrapped(facts.run.failure_text)] if is_cut else []
        if found := evidence(facts):
            parts["cause"] += [section("evidence"), *found]
        has_events = name == "log" and self._shows_log
        has_events |= name not in ("log", "timeline") and (self._log_is_below or facts.attempt is None)
        log = [] if has_events or self._log_is_below else log_end(self._files)
        shown: list[Sequence[Block]] = [part for each, part in parts.items() if each != name]
        if has_events:
            shown.append(laid_out([happened(facts)], drawing)[: height // 2])
        if name != "config" and not log:
            shown.append([*configuration_blocks(facts, None, drawing, without=SAID_ABOVE)])
        return stacked(shown, log, height, drawing)

    def _pane_and_log(self, view: PaneView, drawing: Drawing) -> Iterable[Block]:
        """Draw the pane, with the end of the log below a short one; where its room is little, it stays beside it."""
        lines = laid_out(self._pane.content(view), drawing)
        room = view.height - len(lines) - 1
        least = view.height // 3 if self._has_side else FEWEST_LOG_LINES
        log = log_end(self._files)
        if not self._pane.has_log_below or not log or room <= least:
            return lines
        self._log_is_below = True
        return [*lines, Line(), *stacked((), log, room, drawing)]

    def _fetch(self) -> None:
        """Read the pane's data from files in a thread."""
        pane = self._pane

        def take(found: Any) -> None:
            pane.data = found
            self.draw()

        if self._facts is not None:
            self.in_background(partial(pane.read, self._facts), take, latest=pane.name)


def _pane_names(current: str, drawing: Drawing) -> Iterable[Pieces]:
    """Draw the names of the panes, the current one standing out."""
    pieces: list[Piece] = [(" ", "text")]
    for name in (kind.name for kind in _PANES):
        pieces += [(name.capitalize(), "accent" if name == current else "dim"), ("   ", "text")]
    rule = drawing.signs.rule * max(0, drawing.width - width_of(pieces) - 1)
    return [(*pieces, (rule, "faint"))]
