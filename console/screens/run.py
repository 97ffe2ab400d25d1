"""The run screen: one run's log, attempts, submissions, resources, model calls, files and configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.containers import Horizontal
from textual.widget import Widget

from mlebench_console.competitions.model import edition_named
from mlebench_console.console import wording
from mlebench_console.console.actions import runs
from mlebench_console.console.actions.action import applies
from mlebench_console.console.fields import REST, Cell, Forms, NounField
from mlebench_console.console.lists import Marks
from mlebench_console.console.logs.reader import last_lines
from mlebench_console.console.nouns.call import CALL, MODEL_USE, TRAFFIC, CallHistory, CallRow
from mlebench_console.console.nouns.cause import group_text
from mlebench_console.console.nouns.costs import many, money, short_cost, tokens_in_words
from mlebench_console.console.nouns.event import ListedEvent, event_role, event_sign, joined_steps
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.nouns.run import RunRow, draw_run, state_role
from mlebench_console.console.nouns.submission import NO_REASON, SUBMISSION, SubmissionRow, submission_rows
from mlebench_console.console.pieces import (
    Line,
    bar,
    cells_of,
    cut,
    foreign,
    foreign_lines,
    heading,
    joined,
    spread,
    spread_fitting,
    width_of,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, better_arrow
from mlebench_console.console.sanitize import plain
from mlebench_console.console.screens.dialogs import open_classify
from mlebench_console.console.screens.logs import FileScreen, LogScreen
from mlebench_console.console.tui.keys import Context, Key
from mlebench_console.console.tui.screen import NOT_READ, Queries
from mlebench_console.console.tui.widgets.chart import Level, Series, chart, strip_chart
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.log_view import LogPane
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.ruler import distances, medal_role, ruler
from mlebench_console.console.tui.widgets.table import Column, Table
from mlebench_console.console.views.run import (
    MOST_ENTRIES,
    FileEntry,
    Listing,
    Point,
    RunFacts,
    UsageCurves,
    Validations,
    order_facts,
    read_calls,
    read_listing,
    read_order,
    read_usage,
    read_validations,
    run_facts,
)
from mlebench_console.engine.model_costs import named
from mlebench_console.engine.needs.causes import group_by_cause
from mlebench_console.engine.needs.waits import QueuedRun, WaitKind, release_of_job
from mlebench_console.engine.options.sweep import usual_values
from mlebench_console.environment.gateway.records import CallOutcome
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.amounts import MOST_OF_BUDGET
from mlebench_console.foundation.fields import flat
from mlebench_console.foundation.text import names_of_limits, plural
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import ENGINE, FailureClass, Outcome, RunState
from mlebench_console.state.records import Attempt, Run, Submission, Sweep
from mlebench_console.state.transitions import is_reroll

if TYPE_CHECKING:
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.state.database import Database

PANES = ("log", "timeline", "submissions", "resources", "calls", "files", "config")
_READERS: dict[str, Callable[[RunFacts], Any]] = {
    "submissions": lambda facts: read_validations(facts.directory) if facts.directory else Validations(),
    "files": read_listing,
    "resources": read_usage,
    "config": read_order,
}

_GROWING = ("resources", "submissions", "calls")

_EVIDENCE_LINES = 6
# Narrower screens show short forms beside the score.
_WIDE = 110
# The lines of the log in the pane beside a list.
_PANE_LOG_LINES = 40
_PANE_FEWEST_LOG_LINES = 5
_PANE_ATTEMPTS = 3
# The most rows of the chart of scores beside a log, and without one.
_PANE_CHART_ROWS, _ROWS_WITHOUT_LOG = 9, 14
_PANE_SUBMISSIONS = 6
# The width from which a column beside the pane shows the rest of the run, its least and greatest width, and how wide
# the pane is before the column grows.
_SIDE_FROM = 150
_SIDE_WIDTHS = (56, 84)
_PANE_WIDTH = 116
_PANE_CAUSE_LINES = 4
_PANE_EVIDENCE_LINES = 3
# The least space between the run's name and its state.
_GAP = 3
# The width of a chart of scores from which there is room for the values of the cut-offs.
_NUMBERED_FROM = 60


class RunScreen(LogScreen):
    """The run's data at the top, one of seven panes below."""

    CONTEXTS = ("run", "submissions", "log")
    VERTICAL_BREAKPOINTS = [(0, "-low"), (36, "-tall")]  # noqa: RUF012  # as the base class declares it
    OWN_CONTEXTS = 2
    AUTO_FOCUS = ""

    def __init__(self, run_id: int, *, pane: str = "log") -> None:
        super().__init__()
        self._run_id = run_id
        self._pane = pane
        self._facts: RunFacts | None = None
        self._marks: Marks[int] = Marks()
        # The data that panes read from files, by pane, and those shown beside them.
        self._read: dict[str, Any] = {}
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
        """Return the log's keys, or a list's."""
        if self._pane == "submissions":
            return "run", "submissions", "list"
        return ("run", "log") if self._shows_log else ("run", "list")

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty if it would do nothing."""
        if not self._can_do(key):
            return ""
        if key.id == "run.relaunch" and self._facts is not None:
            return "re-roll" if is_reroll(self._facts.run) else "relaunch (free)"
        return super().label_of(key)

    def _can_do(self, key: Key) -> bool:
        """Return whether a key applies to this run as it is, and to the pane."""
        facts = self._facts
        if facts is None:
            return key.context == "app" or key.id in ("run.next", "run.back")
        can = {
            "run.relaunch": lambda: applies(runs.relaunch, [facts.run]),
            "run.stop": lambda: applies(runs.stop, [facts.run]),
            "run.classify": lambda: facts.run.failure_class is not None,
            "run.open": lambda: {
                "submissions": bool(facts.submissions),
                "files": facts.attempt is not None,
            }.get(self._pane, False),
            "run.code": lambda: facts.attempt is not None and facts.attempt.started_at is not None,
            "run.diff": lambda: len(facts.attempts if self._pane == "timeline" else facts.submissions) > 1,
            "submissions.mark": lambda: len(facts.submissions) > 1,
        }.get(key.id)
        return can is None or can()

    def on_mount(self) -> None:
        """Open the requested pane."""
        self._show_pane(self._pane)

    def tick_seconds(self) -> float:
        """Return a shorter interval for runs with a short time limit."""
        return self.tick_seconds_within(
            self._facts.sweep.conditions.time_limit_seconds if self._facts else None
        )

    def tick(self) -> None:
        """Redraw, and read growing files again."""
        super().tick()
        if self._facts is not None and self._facts.run.is_live:
            if self._pane in _GROWING:
                self._fetch()
            self._read_files(self._facts)

    def redraw(self) -> None:
        """Draw the header and the pane."""
        facts = self._facts
        if facts is None:
            return
        width, engine = self.size.width, self.app.engine
        self.query_one("#header", Painted).show(*_header(facts, engine, width, self.app.drawing))
        self.query_one("#panes", Painted).show(_pane_names(self._pane, width, self.app.drawing))
        if self._shows_log:
            self.query_one(LogPane).redraw()
        else:
            self._log_is_below = False
            self.query_one("#list", LineList).show(self._lines(facts))
        self._draw_side(facts)

    def action_open(self) -> None:
        """Open the file or snapshot under the cursor."""
        facts, key = self._facts, self.query_one("#list", LineList).key
        if facts is None:
            return
        if self._pane == "files" and isinstance(key, str):
            entries = self._read["files"].entries
            kind = next((entry.kind for entry in entries if entry.path == key), "")
            if kind == "file":
                self.app.push_screen(FileScreen(Path(key)))
            else:
                self.app.say(f"a {kind} can't be opened" if kind else "the file no longer exists")
        elif self._pane == "submissions":
            for each in facts.submissions:
                if each.id == key:
                    snapshot = facts.state_dir / each.path
                    if snapshot.exists():
                        self.app.push_screen(FileScreen(snapshot, about=self._about(each)))
                    else:
                        self.app.say(
                            "the file is gone: older snapshots are thinned out when they take much room"
                        )

    def action_code(self) -> None:
        """Open the code at the submission under the cursor, or at the best one."""
        from mlebench_console.console.screens.code import (
            CodeScreen,  # imported here, since the log is needed first
        )
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
        if chosen is not None:
            self._marks = self._marks.toggled(chosen.id)
            self.redraw()

    def action_diff(self) -> None:
        """Compare two submissions, or on the timeline pane an attempt with the previous one."""
        from mlebench_console.console.screens.code import DiffScreen

        pair = self._pair()
        if isinstance(pair, str):
            self.app.say(pair)
        else:
            self.app.push_screen(DiffScreen(*pair))

    def action_pane(self, step: int) -> None:
        """Show the next or previous pane."""
        self._show_pane(PANES[(PANES.index(self._pane) + step) % len(PANES)])

    def action_relaunch(self) -> None:
        """Relaunch this run."""
        if self._facts is not None:
            sweep = self._facts.sweep
            limits = {sweep.id: sweep.conditions.time_limit_seconds}
            self.app.act(runs.relaunch, [self._facts.run], limits=limits)

    def action_stop(self) -> None:
        """Stop this run."""
        if self._facts is not None:
            self.app.act(runs.stop, [self._facts.run])

    def action_regrade(self) -> None:
        """Retry this run's failed grading."""
        if self._facts is not None:
            self.app.act(runs.regrade, [self._facts.run])

    def action_classify(self) -> None:
        """Correct the class of this run's failure."""
        if self._facts is not None:
            open_classify(self.app, [self._facts.run])

    def action_copy(self) -> None:
        """Copy the path of the run's directory to the terminal's clipboard."""
        if self._facts is not None and self._facts.directory is not None:
            self.app.copy_path(self._facts.directory)

    def _about(self, each: Submission) -> str:
        """Name a submission with its score, for the title of its file."""
        words = [f"run {self._run_id}", f"submission {each.sequence}"]
        words += [wording.score(each.score, 9)] if each.score is not None else []
        words += [wording.OUTCOME_WORDS[each.standing]] if each.standing is not None else []
        return ", ".join(words)

    def _submission(self) -> Submission | None:
        """The submission under the cursor."""
        if self._facts is None or self._pane != "submissions":
            return None
        key = self.query_one("#list", LineList).key
        return next((each for each in self._facts.submissions if each.id == key), None)

    def _why_no_attempt(self) -> str:
        return "the run was never launched" if self._facts is not None else NOT_READ

    def _pair(self) -> tuple[Wanted, Wanted] | str:
        """Return the two versions to compare, the earlier one first, or why they can't be compared."""
        from mlebench_console.console.views.code import Wanted

        facts = self._facts
        if facts is None or facts.attempt is None:
            return self._why_no_attempt()
        key = self.query_one("#list", LineList).key
        if self._pane == "timeline" and isinstance(key, tuple) and key[0] == "attempt":
            if key[1] == 1:
                return "there is no earlier attempt to compare with"
            return Wanted(self._run_id, key[1] - 1), Wanted(self._run_id, key[1])
        by_id = {each.id: each for each in facts.submissions}
        chosen = {each: by_id[each] for each in self._marks.keys if each in by_id}
        current = self._submission() or facts.best or next(reversed(facts.submissions), None)
        if current is not None and len(chosen) < 2:
            chosen[current.id] = current
        if current is not None and len(chosen) < 2:
            before = [each for each in facts.submissions if each.sequence < current.sequence]
            chosen |= {each.id: each for each in before[-1:]}
        if len(chosen) != 2:
            return (
                "there are no two submissions to compare"
                if len(chosen) < 2
                else "mark two submissions, not more"
            )
        ordered = sorted(chosen.values(), key=lambda each: each.sequence)
        left, right = (Wanted(self._run_id, facts.attempt.number, str(each.sequence)) for each in ordered)
        return left, right

    @property
    def _shows_log(self) -> bool:
        """Whether the log is shown, rather than a list; a run that was never launched has none."""
        return self._pane == "log" and (self._facts is None or self._facts.attempt is not None)

    def _show_pane(self, pane: str) -> None:
        self._pane = pane
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
            self._read, self._files = {}, None
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
        if not side.display:
            return
        narrowest, widest = _SIDE_WIDTHS
        side.styles.width = min(widest, max(narrowest, self.size.width - _PANE_WIDTH))
        width, height = side.size.width - 2, self.query_one("#body").size.height
        if width < 1:  # not laid out yet
            self.call_after_refresh(self.draw)
            return
        signs = self.app.signs
        # Where the log is not beside the pane, the chart has its room.
        rows = _ROWS_WITHOUT_LOG if self._pane == "log" or self._log_is_below else _PANE_CHART_ROWS
        parts = _parts(facts, self._files, self.app.engine, width, height, self.app.drawing, chart_rows=rows)
        # The header has the cause, unless it was cut there.
        is_cut = len(facts.run.failure_text) + len(wording.failure(facts.run)) > self.size.width - 8
        evidence = _evidence(facts, width)
        parts["cause"] = _failure_text(facts, width) if is_cut else []
        parts["cause"] += [heading("evidence", width, signs), *evidence] if evidence else []
        has_events = self._pane == "log" and self._shows_log
        has_events |= self._pane not in ("log", "timeline") and (self._log_is_below or facts.attempt is None)
        log = [] if has_events or self._log_is_below else _log_part(self._files, width, self.app.drawing)
        shown = _stacked((part for name, part in parts.items() if name != self._pane), log, height)
        with_what: list[Pieces] = []
        if self._pane != "config":
            # The path of its directory would be broken where it can't be copied.
            settings = _config(facts, None, width, self.app.drawing, without=("directory",))
            with_what = [line.pieces for line in settings]
        if has_events:
            events = [line.pieces for line in _events(facts, width, self.app.drawing)]
            room = height - len(shown) - 1
            shown += [()] * bool(shown)
            shown += _first(events, max(room // 2, room - len(with_what) - 1))
        shown += [()] * bool(shown and with_what)
        shown += _first(with_what, height - len(shown))
        rule: Piece = (f"{signs.axis} ", "faint")
        shown += [()] * (height - len(shown))
        side.show(*((rule, *cut(line, width)) for line in shown))

    def _lines(self, facts: RunFacts) -> list[Line]:
        shown = self.query_one("#list", LineList)
        width = shown.line_width
        height = shown.size.height
        if self._pane == "log":
            waits = _waits_for(facts, self.app.engine, width, self.app.drawing)
            no_log = Line((("  no log: the run was never launched", "dim"),))
            events = [Line(), *_events(facts, width, self.app.drawing)] if facts.events else []
            return [*waits, *_stopped(facts), no_log, *events]
        if self._pane == "timeline":
            return self._with_log(_timeline(facts, width, self.app.drawing), width, height)
        if self._pane == "submissions":
            checks = self._read.get("submissions", Validations())
            listed = _submissions(facts, checks, self._marks, width, self.app.drawing)
            # The chart has the room that the list leaves, but for its time axis.
            rows = max(5, height // 2 - 3, height - len(listed) - 1)
            drawn = _score_chart(facts, width - 2, min(_ROWS_WITHOUT_LOG, rows), self.app.drawing)
            return self._with_log([*drawn, *listed], width, height)
        if self._pane == "resources":
            return _resources(facts, self._read.get("resources"), width - 2, height, self.app.drawing)
        if self._pane == "calls":
            calls = _calls(facts, self._read.get("calls", CallHistory()), width, height, self.app.drawing)
            return self._with_log(calls, width, height)
        if self._pane == "files":
            return self._with_log(
                _files(self._read.get("files", Listing()), width, self.app.drawing), width, height
            )
        return self._with_log(
            _config(facts, self._read.get("config"), width, self.app.drawing), width, height
        )

    def _with_log(self, lines: list[Line], width: int, height: int) -> list[Line]:
        """Fill the room below a short list with the last lines of the log; where it is little, they stay beside it."""
        room = height - len(lines) - 1
        least = height // 3 if self._has_side else _PANE_FEWEST_LOG_LINES
        log = _log_part(self._files, width, self.app.drawing)
        if not log or room <= least:
            return lines
        self._log_is_below = True
        return [*lines, Line(), *map(Line, _stacked((), log, room))]

    def _fetch(self) -> None:
        """Read the pane's data from files in a thread."""
        pane = self._pane

        def take(found: Any) -> None:
            self._read[pane] = found
            self.draw()

        if self._facts is not None and pane == "calls":
            known = self._read.get(pane, CallHistory())
            self.in_background(partial(read_calls, self._facts, known), take, latest="calls")
        elif self._facts is not None and pane in _READERS:
            self.in_background(partial(_READERS[pane], self._facts), take)


def _header(facts: RunFacts, engine: EngineStatus | None, width: int, drawing: Drawing) -> tuple[Pieces, ...]:
    """Draw the run's name, state and standing."""
    run, dot = facts.run, _dot(drawing)
    state = [_state(facts, drawing, with_bar=width >= 100), _state(facts, drawing, with_bar=False)]
    name = foreign(run.competition_id, max(12, min(60, width - 10 - width_of(state[1])))).rstrip()
    place: list[Pieces] = [((f" {name}", "strong"),), ((f"seed {run.seed}", "text"),)]
    if run.attempts:
        place.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        place.append(((f"re-rolled {run.rerolls}{drawing.signs.times}", "warn"),))
    place.append(((foreign(run.sweep_id, 30).rstrip(), "dim"),))
    room = width - width_of(state[1]) - _GAP
    lines = [spread_fitting([joined(place, dot, room)], state, width), _standing(facts, width, drawing)]
    if run.failure_class is not None:
        lines.append(_failure(facts, width, drawing))
    elif facts.queued is not None:
        lines.append(_waits(facts.queued, engine, width, drawing))
    elif facts.attempt is not None and (wait := facts.job_wait) is not None:
        role: Role = "warn" if wait.needs_person else "text"
        lines.append(
            ((f" {foreign(wording.placed(facts.attempt, wait, drawing.now), width - 2).rstrip()}", role),)
        )
        if step := release_of_job(facts.attempt):
            lines.append(((f" next: {foreign(step, width - 8).rstrip()}", "text"),))
    elif trouble := _trouble(facts, drawing):
        lines.append(((f" {foreign(trouble, width - 2).rstrip()}", "warn"),))
    lines += _notes(run, width, drawing)
    return tuple(lines)


def _notes(run: Run, width: int, drawing: Drawing) -> list[Pieces]:
    """Draw its tags and its note, with their author if there is room."""
    if not (run.tags or run.note):
        return []
    noted = foreign(wording.annotation(run), 2000).rstrip()
    by: Pieces = ((f"   {wording.annotated_by(run, drawing.now)} ", "dim"),)
    pieces: Pieces = ((f" {drawing.signs.noted} ", "accent"), (noted, "text"))
    fits = width_of((*pieces, *by)) <= width
    return [spread(pieces, by, width) if fits else cut(pieces, width, drawing.signs.ellipsis)]


def _dot(drawing: Drawing) -> Piece:
    return f" {drawing.signs.dot} ", "faint"


def _pane_names(current: str, width: int, drawing: Drawing) -> Pieces:
    """Draw the names of the panes, the current one standing out."""
    pieces: list[Piece] = [(" ", "text")]
    for name in PANES:
        pieces += [(name.capitalize(), "accent" if name == current else "dim"), ("   ", "text")]
    rule = drawing.signs.rule * max(0, width - sum(len(text) for text, _ in pieces) - 1)
    return (*pieces, (rule, "faint"))


def _state(facts: RunFacts, drawing: Drawing, *, with_bar: bool) -> Pieces:
    run, limit = facts.run, facts.sweep.conditions.time_limit_seconds
    row = RunRow(run, limit, facts.attempt)
    drawn = draw_run(row, Drawing(drawing.now, drawing.signs))
    word = wording.OUTCOME_WORDS[run.outcome] if run.outcome else run.state.value
    # Amber where Overview wants a live run looked at.
    role = drawn.role if run.is_live else state_role(run)
    sign = drawn.sign
    if run.state is RunState.FAILED:
        sign += wording.FAILURE_LETTERS[run.failure_class or FailureClass.UNKNOWN]
    elif (wait := facts.job_wait) is not None and wait.kind is WaitKind.JOB:
        word, role = "waits in Slurm", "warn" if wait.needs_person else "text"
    if run.started_at is None:
        return ((f"{sign} {word} ", role),)
    took = _length(facts, drawing)
    pieces: list[Piece] = [(f"{sign} {word} ", role), (f"{wording.of_limit(took, limit)} ", "text")]
    if run.is_live and with_bar:
        full, empty = bar(took / limit, 20, drawing.signs)
        pieces += [(full, "running"), (empty, "faint"), (" ", "text")]
    return tuple(pieces)


def _standing(facts: RunFacts, width: int, drawing: Drawing) -> Pieces:
    run = facts.run
    stands: list[Piece] = [(" ", "text")]
    if run.standing is None:
        stands.append(("nothing graded" if run.has_ended else "nothing graded yet", "dim"))
    elif run.outcome in _REFUSED:
        stands.append(("no score", "dim"))  # the line above names the outcome
    else:
        stands += [
            ("now " if run.is_live else "", "dim"),
            (wording.OUTCOME_WORDS[run.standing], outcome_role(run.standing)),
        ]
    arrow = (
        f" {better_arrow(facts.competition.thresholds, drawing.signs)}"
        if facts.competition is not None
        else ""
    )
    if run.score is not None:
        stands += [(f" {wording.score(run.score, 9)}", "text"), (arrow, "dim")]
    groups: list[Pieces] = [tuple(stands)]
    if facts.percentile is not None:
        groups.append(((wording.rank(facts.percentile, short=width < _WIDE), "text"),))
    best = facts.best
    if best is not None and best.score != run.score:
        word = f" {wording.OUTCOME_WORDS[best.standing]}" if best.standing is not None else ""
        groups.append(
            (("best ", "dim"), (f"{wording.score(best.score, 9)}{word}", outcome_role(best.standing)))
        )
    if run.suspected and run.failure_class is None:
        groups.append(((f"suspected: {run.suspected.words}", "warn"),))
    if facts.attempt is not None and facts.attempt.isolated is False:
        groups.append((("not isolated", "warn"),))
    if run.is_live and facts.attempt is not None and facts.attempt.node:
        groups.append(((f"on {foreign(facts.attempt.node, 40).rstrip()}", "dim"),))
    if facts.competition is not None:
        cuts = facts.competition.thresholds
        bronze, median = wording.score(cuts.bronze, 8), wording.score(cuts.median, 8)
        beside = arrow if run.score is None else ""
        groups.append(((f"bronze {bronze}, median {median}{beside}", "dim"),))
    if run.is_live and run.last_activity_at is not None:
        quiet = wording.age(drawing.now - run.last_activity_at)
        groups.append((("last change " + ("now" if quiet == "now" else f"{quiet} ago"), "dim"),))
    if facts.submissions:
        valid = sum(each.valid is True for each in facts.submissions)
        text = f"{valid} valid of {plural(len(facts.submissions), 'submission')}"
        groups.append(((text, "dim"),))
    if facts.spending.models:
        groups.append(((f"models {short_cost(facts.spending)}", "dim"),))
    return joined(groups, _dot(drawing), width)


def _waits(queued: QueuedRun, engine: EngineStatus | None, width: int, drawing: Drawing) -> Pieces:
    """Write in one line why a queued run does not start yet, and when it may."""
    role: Role = "warn" if any(wait.needs_person for wait in queued.waits(engine)) else "text"
    text = foreign(wording.waiting(queued, engine, drawing.now), 1000).rstrip()
    return cut(((f" {text}", role),), width, drawing.signs.ellipsis)


def _failure(facts: RunFacts, width: int, drawing: Drawing) -> Pieces:
    run, attempt = facts.run, facts.attempt
    words = wording.failure(run)
    if facts.retry_at is not None:
        words += ", retried " + (
            "now" if facts.retry_at <= drawing.now else f"at {wording.clock(facts.retry_at)}"
        )
    by = (
        f" (classified by {attempt.classified_by})"
        if attempt and attempt.classified_by not in ("", ENGINE)
        else ""
    )
    said = run.failure_text
    if not said and attempt is not None:
        said = wording.how_it_ended(attempt)
    text = foreign(f"{said}{by}", width - len(words) - 5).rstrip()
    return ((f" {words}", "bad"), ("  ", "text"), (text, "text"))


@dataclass(frozen=True)
class RunFiles:
    """The data of a run's files for the pane beside a list: the last lines of its log, and its resource usage."""

    log: tuple[str, ...]
    usage: UsageCurves


def read_files(facts: RunFacts) -> RunFiles:
    """Read the pane's data from the latest attempt's files; waits for the disk."""
    log = last_lines(facts.log, _PANE_LOG_LINES) if facts.log is not None else ()
    return RunFiles(log, read_usage(facts))


def pane_lines(
    facts: RunFacts,
    files: RunFiles | None,
    engine: EngineStatus | None,
    width: int,
    height: int,
    drawing: Drawing,
) -> list[Pieces]:
    """Draw a run's pane beside a list: its name and state, and below them its parts as far as there is room."""
    run, dot = facts.run, _dot(drawing)
    seed = f"  seed {run.seed}"
    name: Pieces = (
        (f" {foreign(run.competition_id, width - len(seed) - 1).rstrip()}", "strong"),
        (seed, "text"),
    )
    state: list[Pieces] = [((" ", "text"), *_state(facts, drawing, with_bar=False))]
    if run.attempts > 1:
        state.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        state.append(((f"re-rolled {run.rerolls}{drawing.signs.times}", "warn"),))
    head = [name, joined(state, dot, width), _standing(facts, width, drawing)]
    if run.failure_class is not None:
        head.append(((f" {wording.failure(run)}", "bad"),))
    head += _notes(facts.run, width, drawing)
    parts = _parts(facts, files, engine, width, height, drawing)
    if len(parts["submissions"]) > height - len(head) - len(parts["cause"]):
        # Half a curve says less than the log in its place, and a single attempt little beside the state above.
        parts["submissions"] = []
        parts["timeline"] = parts["timeline"] if len(facts.attempts) > 1 else []
    return [*head, *_stacked(parts.values(), _log_part(files, width, drawing), height - len(head))]


def _parts(
    facts: RunFacts,
    files: RunFiles | None,
    engine: EngineStatus | None,
    width: int,
    height: int,
    drawing: Drawing,
    *,
    chart_rows: int = _PANE_CHART_ROWS,
) -> dict[str, list[Pieces]]:
    """Draw the parts of a run that are shown beside a list or a pane, by the pane that shows more; empty ones too.

    The most urgent ones are first.
    """
    parts: dict[str, list[Pieces]] = {"cause": _cause(facts, engine, width, drawing)}
    rows = max(5, min(chart_rows, height // 4))
    curve = [line.pieces for line in _score_chart(facts, width - 1, rows, drawing)]
    title = "score over time" if curve else "submissions"
    if facts.competition is not None and len(_scores(facts)) == 1:
        drawn = ruler(facts.competition.thresholds, facts.run.score, width - 2, drawing.signs)
        curve = [((" ", "text"), *pieces) for pieces in drawn]
    newest = _rows(facts)[: -_PANE_SUBMISSIONS - 1 : -1]
    if len(facts.submissions) > 1:
        columns = _submission_columns("into number which sign standing score", facts, drawing)
        table = Table(columns, newest, width, Drawing(drawing.now, drawing.signs))
        curve += [table.heading().pieces, *(table.line(each).pieces for each in newest)]
    parts["submissions"] = [heading(title, width, drawing.signs), *curve] if curve else []
    parts["resources"] = []
    if files is not None and files.usage.latest is not None:
        titles = [kind.title(facts.run.is_live) for kind in _measured(facts, files.usage)]
        parts["resources"] = [heading("resources", width, drawing.signs), *titles]
    parts["timeline"] = []
    if facts.attempts:
        attempts = Table(_attempt_columns(facts, drawing, brief=True), facts.attempts, width, drawing)
        latest = facts.attempts[: -_PANE_ATTEMPTS - 1 : -1]
        shown = [attempts.heading(), *map(attempts.line, latest)]
        parts["timeline"] = [heading("attempts", width, drawing.signs), *(line.pieces for line in shown)]
    return parts


def _stacked(parts: Iterable[list[Pieces]], log: list[Pieces], height: int) -> list[Pieces]:
    """Put parts below one another; a log gets the rest of the height, and shows its last lines.

    If that is too high, parts are left out from the last one on, but for the first.
    """
    upper = [part for part in parts if part]
    fewest = min(len(log), 1 + _PANE_FEWEST_LOG_LINES)
    while len(upper) > 1 and sum(map(len, upper)) + len(upper) + fewest > height:
        del upper[-1]
    lines = [line for part in upper for line in ((), *part)][1:]
    room = height - len(lines) - 1 - bool(lines)
    return [*lines, *[()] * bool(lines and log), *log[:1], *log[1:][-room:]] if room > 0 else lines


def _first(lines: Sequence[Pieces], most: int) -> list[Pieces]:
    """Return the first lines; where there are more, the last one says how many."""
    if len(lines) <= most:
        return list(lines)
    shown = max(0, most - 1)
    return [*lines[:shown], ((f"  {len(lines) - shown:,} more", "dim"),)][: max(0, most)]


def _log_part(files: RunFiles | None, width: int, drawing: Drawing) -> list[Pieces]:
    """Draw the last lines of the log below a heading; no lines for an empty log."""
    log = () if files is None else files.log
    lines: list[Pieces] = [((f" {foreign(text, width - 1).rstrip()}", "dim"),) for text in log]
    return [heading("log", width, drawing.signs), *lines] if lines else []


def _cause(facts: RunFacts, engine: EngineStatus | None, width: int, drawing: Drawing) -> list[Pieces]:
    """Write why a run failed, waits or can't be graded, with the evidence, cut to the pane's lines."""
    run = facts.run
    if facts.queued is not None:
        reasons = _waits_for(facts, engine, width, drawing)
        return [line.pieces for line in (*reasons, *_config(facts, None, width, drawing, doubts_first=False))]
    if run.failure_class is not None:
        return _failure_text(facts, width) + _evidence(facts, width)
    found: list[Piece] = [(_trouble(facts, drawing), "warn")]
    if run.is_live and facts.attempt is not None:
        wait = facts.job_wait
        is_held = wait is not None and wait.needs_person
        found.append((wording.placed(facts.attempt, wait, drawing.now), "warn" if is_held else "dim"))
    return [
        ((f" {part}", role),)
        for text, role in found
        for part in foreign_lines(text, width - 2, _PANE_CAUSE_LINES)
    ]


def _failure_text(facts: RunFacts, width: int) -> list[Pieces]:
    return [
        ((f" {part}", "text"),)
        for part in foreign_lines(facts.run.failure_text, width - 2, _PANE_CAUSE_LINES)
    ]


def _evidence(facts: RunFacts, width: int) -> list[Pieces]:
    """Quote the lines from which the cause of a failure was derived, but for those that equal it."""
    if facts.run.failure_class is None or facts.attempt is None:
        return []
    rows = facts.attempt.evidence.splitlines()[:_PANE_EVIDENCE_LINES]
    return [
        ((f" {foreign(row, width - 2).rstrip()}", "warn"),)
        for row in rows
        if row.strip() != facts.run.failure_text.strip()
    ]


def _trouble(facts: RunFacts, drawing: Drawing) -> str:
    """Write why its submission was refused, or why a live run should be looked at; empty if there is no reason."""
    run = facts.run
    if run.outcome in _REFUSED and facts.submissions:
        return facts.submissions[-1].message or NO_REASON
    limits = {facts.sweep.id: facts.sweep.conditions.time_limit_seconds}
    groups = group_by_cause([run], limits, {}, drawing.now) if run.is_live else ()
    return group_text(groups[0], drawing.now) if groups else ""


_REFUSED = (Outcome.INVALID, Outcome.NO_SUBMISSION)


def _timeline(facts: RunFacts, width: int, drawing: Drawing) -> list[Line]:
    """List attempts with the evidence of how they ended, then events, newest first."""
    attempts = Table(_attempt_columns(facts, drawing), facts.attempts, width, drawing)
    lines = [attempts.heading()]
    for attempt in reversed(facts.attempts):
        lines.append(attempts.line(attempt, key=("attempt", attempt.number)))
        for row in attempt.evidence.splitlines()[:_EVIDENCE_LINES]:
            if row.strip() == attempt.failure_text.strip():
                continue
            lines.append(Line(((" " * 11, "text"), (foreign(row, width - 13), "warn"))))
    if not facts.attempts:
        lines.append(Line((("  never launched yet", "dim"),)))
    return [*lines, Line(), *_events(facts, width, drawing)]


def _events(facts: RunFacts, width: int, drawing: Drawing) -> list[Line]:
    """List the run's events, newest first, those with which an attempt begins or ends as one."""
    found = joined_steps(ListedEvent(event, facts.run.seed) for event in facts.events)

    def parts(one: ListedEvent) -> list[str]:
        return foreign_lines(one.words, width - _BEFORE_EVENT, _PANE_CAUSE_LINES) or [""]

    def what(one: ListedEvent) -> Forms:
        words: Pieces = ((parts(one)[0], event_role(one)),)
        return Forms(
            [*([(*words, (f" {drawing.signs.dot} {one.ended}", "dim"))] if one.ended else []), words]
        )

    columns: list[Column[ListedEvent]] = [
        Column("events", lambda one: wording.day_and_time(one.event.at), 11, role="dim"),
        Column("", lambda one: event_sign(one, drawing.signs), 3, gap=1),
        Column("", what, 10, grows=REST, gap=1),
    ]
    table = Table(columns, found, width, drawing)
    lines = [table.heading()]
    for one in found:
        lines.append(table.line(one, key=("event", one.event.id)))
        role = event_role(one)
        lines += [table.line_of(("", "", ((part, role),))) for part in parts(one)[1:]]
    return lines


# What stands before the words of an event.
_BEFORE_EVENT = 18


def _what_came(attempt: Attempt, *, brief: bool) -> Pieces:
    what = attempt.failure_text
    if attempt.outcome:
        what = wording.OUTCOME_WORDS[attempt.outcome]
    elif attempt.failure_class is not None and (brief or not what):
        what = wording.FAILURE_WORDS[attempt.failure_class]
    role = outcome_role(attempt.outcome) if attempt.outcome else "bad"
    return ((what + (" (re-roll)" if attempt.reroll else ""), role),)


def _attempt_columns(facts: RunFacts, drawing: Drawing, *, brief: bool = False) -> list[Column[Attempt]]:
    """Return the columns for the attempts of a run; the last one may be live or waiting for a node.

    With `brief`, causes are left to the lines around the table.
    """

    def is_live(attempt: Attempt) -> bool:
        return facts.run.is_live and attempt.ended_at is None and attempt is facts.attempts[-1]

    def took(attempt: Attempt) -> str:
        ended = drawing.now if is_live(attempt) else attempt.ended_at
        return "" if ended is None or attempt.started_at is None else wording.span(ended - attempt.started_at)

    def what(attempt: Attempt) -> Pieces:
        if not is_live(attempt):
            return _what_came(attempt, brief=brief)
        if (wait := facts.job_wait) is not None:
            words = "waits" if brief else wording.waits(wait, drawing.now)
            return ((words, "warn" if wait.needs_person else "text"),)
        return ((facts.run.state.value, state_role(facts.run)),)

    return [
        Column("attempt", lambda attempt: str(attempt.number), 7),
        Column("began", lambda attempt: wording.day_and_time(attempt.created_at), 11, role="dim"),
        Column("took", took, 6, role="dim"),
        Column("ended", wording.how_it_ended, 8, grows=22, drop=1, role="dim"),
        Column("what", what, 10, grows=REST),
    ]


def _stopped(facts: RunFacts) -> list[Line]:
    """Write when and by whom a run was stopped."""
    if facts.run.state is not RunState.STOPPED:
        return []
    stop = next((each for each in facts.events if each.kind == EventKind.RUN_STOPPED), None)
    if stop is None:
        return []
    return [Line(((f"  {foreign(stop.text, 60).rstrip()}, {wording.day_and_time(stop.at)}", "text"),))]


def _waits_for(facts: RunFacts, engine: EngineStatus | None, width: int, drawing: Drawing) -> list[Line]:
    """Write why a queued run does not start yet, what can be done about it, and when it may start."""
    queued = facts.queued
    lines: list[Line] = []
    if queued is not None:
        waits = queued.waits(engine)
        if not waits:
            lines.append(Line((("  nothing: the engine starts it in a moment", "text"),)))
        for place, wait in enumerate(waits):
            role: Role = "warn" if wait.needs_person else "text"
            label = "waits" if not place else ""
            for number, part in enumerate(
                foreign_lines(wait.text, width - _WAITS_LABEL - 3, _PANE_CAUSE_LINES)
            ):
                lines.append(
                    Line(((f"  {label if not number else '':<{_WAITS_LABEL}}", "dim"), (part, role)))
                )
            if step := _NEXT_STEPS.get(wait.kind):
                lines.append(Line(((" " * (_WAITS_LABEL + 2), "text"), (step, "dim"))))
        starts = queued.starts(engine)
        if starts is not None:
            what = (
                "if every run before it takes its whole time limit"
                if starts.at_most
                else "if runs take as long as those that have ended"
            )
            start: Pieces = (
                (f"  {'start':<{_WAITS_LABEL}}", "dim"),
                (wording.expected(starts, drawing.now), "text"),
            )
            lines.append(Line(cut((*start, (f"  {what}", "dim")), width, drawing.signs.ellipsis)))
        lines.append(Line())
    return lines


# What a person can do about what keeps a run from starting.
_NEXT_STEPS = {
    WaitKind.ENGINE: ":engine start starts it",
    WaitKind.PAUSED: ":sweep resume resumes it",
    WaitKind.DATASET: "p on the Data screen prepares it",
    WaitKind.BUDGET: "'sweep budget' on the command line sets another",
}
_WAITS_LABEL = 8


def _submissions(
    facts: RunFacts, checks: Validations, marks: Marks[int], width: int, drawing: Drawing
) -> list[Line]:
    """Draw how far the score is from the cut-offs, if no chart above shows it, and list all snapshots, newest first."""
    lines: list[Line] = []
    now, signs = drawing.now, drawing.signs
    has_chart = len(_scores(facts)) > 1
    if facts.competition is not None and not has_chart:
        drawn = ruler(facts.competition.thresholds, facts.run.score, width - 4, signs)
        lines += [Line(), *(Line((("  ", "text"), *pieces)) for pieces in drawn), Line()]
    told: list[Pieces] = []
    if facts.competition is not None and has_chart and facts.run.score is not None:
        cuts, score = facts.competition.thresholds, facts.run.score
        number: Piece = (f"  {wording.score(score, 9)}", medal_role(cuts, score))
        told.append((number, (f": {distances(cuts, score)}", "text")))
    if facts.percentile is not None:
        told.append(((f"{'' if told else '  '}{wording.rank(facts.percentile)}", "text"),))
    if checks.count:
        text = f"{'' if told else '  '}{plural(checks.count, 'validation')} by the agent"
        if checks.last_at is not None:
            quiet = wording.age(now - checks.last_at)
            text += f", the last {'now' if quiet == 'now' else f'{quiet} ago'}"
        told.append(((text, "dim"),))
    if told:
        lines += [Line(joined(told, _dot(drawing), width)), Line()]
    if not facts.submissions:
        return [*lines, Line((("  no submission" + (" yet" if facts.run.is_live else ""), "dim"),))]
    rows = _rows(facts)
    table = Table(
        _submission_columns("into number which sign standing score size", facts, drawing),
        rows,
        width,
        drawing,
        mark=lambda row: SUBMISSION.key(row) in marks,
    )
    listed = [table.lines(row, SUBMISSION.key(row)) for row in reversed(rows)]
    return [*lines, table.heading(), *chain.from_iterable(listed)]


def _rows(facts: RunFacts) -> list[SubmissionRow]:
    """Return the submissions of the latest attempt, oldest first."""
    return submission_rows(facts.run, facts.attempts[-1:], facts.submissions, facts.competition)


def _submission_columns(
    names: str, facts: RunFacts, drawing: Drawing
) -> tuple[NounField[SubmissionRow], ...]:
    """Return fields of submissions; the title of the score says which direction is better."""
    return SUBMISSION.columns(
        names, number={"title": "#"}, which={"title": ""}, score={"title": _score_title(facts, drawing)}
    )


def _score_title(facts: RunFacts, drawing: Drawing) -> str:
    if facts.competition is None:
        return "score"
    return f"score {better_arrow(facts.competition.thresholds, drawing.signs)}"


def _score_chart(facts: RunFacts, width: int, height: int, drawing: Drawing) -> list[Line]:
    """Draw the score of every graded snapshot over the run's time, the better end on top; a single one is no course."""
    points = _scores(facts)
    if facts.competition is None or len(points) < 2:
        return []
    cuts = facts.competition.thresholds
    end = _length(facts, drawing)
    series = Series(
        # The last score is drawn until the end.
        points=[*points, (max(end, points[-1][0]), points[-1][1])],
        span=(0.0, max(end, 1.0)),
        role=medal_role(cuts, points[-1][1]),
        number=lambda value: wording.score(value, 9),
        levels=(
            Level(cuts.gold, "gold", "gold"),
            Level(cuts.silver, "silver", "silver"),
            Level(cuts.bronze, "bronze", "bronze"),
            Level(cuts.median, "median", "dim"),
        ),
        steps=True,
        upside_down=cuts.is_lower_better,
        numbered=width >= _NUMBERED_FROM,
    )
    return [
        Line(pieces)
        for pieces in chart(series, width, height, drawing.signs, ascii_only=drawing.signs.bar_parts == " ")
    ]


def _scores(facts: RunFacts) -> list[tuple[float, float]]:
    """Return the time into the run and the score of every graded snapshot."""
    return [
        (each.elapsed_seconds, each.score)
        for each in facts.submissions
        if each.score is not None and math.isfinite(each.score)
    ]


def _length(facts: RunFacts, drawing: Drawing) -> float:
    """Return the duration of the latest attempt, so far if it is live."""
    attempt = facts.attempt
    if attempt is None or attempt.started_at is None:
        return 0.0
    return (attempt.ended_at or facts.run.ended_at or drawing.now) - attempt.started_at


@dataclass(frozen=True)
class _Kind:
    """A resource: its measured usage over time, and the amount that the run may or should use.

    Attributes:
        of: the amount in words; empty without one.
        full: the amount as a number, up to which its chart reaches at least.
    """

    name: str
    points: Sequence[Point]
    number: Callable[[float], str]
    of: str = ""
    full: float = 0.0

    @property
    def last(self) -> str:
        """The last value."""
        return self.number(self.points[-1][1])

    @property
    def peak(self) -> float:
        """The greatest value."""
        return max(value for _at, value in self.points)

    def title(self, is_live: bool) -> Pieces:
        """Return the resource's name, last value and maximum."""
        return (
            (f"  {self.name:<12}", "strong"),
            (f"{'now' if is_live else 'last'} {self.last}", "text"),
            (f"{self.of}, peak {self.number(self.peak)}", "dim"),
        )


def _measured(facts: RunFacts, usage: UsageCurves) -> list[_Kind]:
    """Return the measured resources of the latest attempt, the scarcest first."""
    resources = facts.sweep.conditions.resources
    memory = f" of {wording.size(resources.memory_bytes)}" if resources.memory_bytes else ""
    hardware = None if facts.attempt is None else facts.attempt.hardware
    of_gpus = float((hardware.gpu_memory_bytes if hardware is not None else None) or 0)
    kinds = [
        _Kind("GPU busy", usage.gpu_percent, lambda value: f"{value:.0f} %", full=100.0),
        _Kind(
            "GPU memory",
            usage.gpu_memory_bytes,
            wording.size,
            f" of {wording.size(int(of_gpus))}" if of_gpus else "",
            of_gpus,
        ),
        _Kind(
            "processors",
            usage.cpu_percent,
            lambda value: f"{value / 100:.2f}",
            f" of {resources.cpus:g} planned",
            100.0 * resources.cpus,
        ),
        _Kind("memory", usage.memory_bytes, wording.size, memory, float(resources.memory_bytes or 0)),
        _Kind("disk", usage.disk_bytes, wording.size),
        _Kind("network", usage.network_rate, lambda value: f"{wording.size(value)}/s"),
        _Kind("processes", usage.processes, lambda value: f"{value:.0f}"),
    ]
    return [kind for kind in kinds if kind.points]


_FEWEST_CHART_ROWS, _MOST_CHART_ROWS = 2, 8
# The width of the scales of resources.
_SCALE = 11
# The distances of the marks on their time axis, in seconds.
_TICKS = (60, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)


def _resources(
    facts: RunFacts, usage: UsageCurves | None, width: int, height: int, drawing: Drawing
) -> list[Line]:
    """Draw the resource usage of the latest attempt: charts above one another, below one time axis for all.

    Above the charts are the submissions, so that one sees what the agent did when it used most.
    """
    if usage is None:
        return [Line((("  reading samples", "dim"),))]
    if usage.latest is None:
        return [Line((("  nothing has been measured yet", "dim"),))]
    measured = _measured(facts, usage)
    begin = min(kind.points[0][0] for kind in measured) if measured else 0.0
    if facts.attempt is not None and facts.attempt.started_at is not None:
        begin = min(begin, facts.attempt.started_at)
    length = max(_length(facts, drawing), *(kind.points[-1][0] - begin for kind in measured), 1.0)
    # Not drawn before the list has its width, or in a terminal that has none left for charts, but never without room.
    room, ascii_only = max(1, width - _SCALE - 2), drawing.signs.bar_parts == " "
    lines = [*_submitted(facts, length, room, drawing), Line(_hours(facts, length, room))]
    # Below the line with its figures.
    rows_each = (height - len(lines)) // max(1, len(measured)) - 1
    rows_each = max(_FEWEST_CHART_ROWS, min(_MOST_CHART_ROWS, rows_each))
    role: Role = "running" if facts.run.is_live else "dim"
    if facts.sweep.conditions.resources.gpus and not usage.gpu_percent:
        lines.append(Line((("  GPU         not measured", "warn"),)))
    for kind in measured:
        lines.append(Line(kind.title(facts.run.is_live), key=kind.name, selectable=True))
        points = [(at - begin, value) for at, value in kind.points]
        most = max(kind.full, kind.peak)
        drawn = strip_chart(points, (0.0, length), most, room, rows_each, ascii_only=ascii_only)
        scale = [kind.number(most), *[""] * (rows_each - 2), "0"]
        for label, row in zip(scale, drawn, strict=True):
            lines.append(Line(((f"{label:>{_SCALE}} ", "dim"), (drawing.signs.axis, "faint"), (row, role))))
    if not facts.sweep.conditions.resources.gpus:
        lines.append(Line((("  no GPUs were requested", "dim"),)))
    # The cursor can go below the last chart, so that it can be scrolled to.
    return [*lines, Line(key="end", selectable=True)] if len(lines) > height else lines


def _submitted(facts: RunFacts, length: float, room: int, drawing: Drawing) -> list[Line]:
    """Mark the attempt's graded submissions over time by the signs of what they would get."""
    cells: list[Piece] = [(" ", "text")] * room
    for each in facts.submissions:
        if each.standing is not None and each.elapsed_seconds <= length:
            place = min(room - 1, int(each.elapsed_seconds / length * room))
            cells[place] = (outcome_sign(each.standing, drawing.signs), outcome_role(each.standing))
    if not facts.submissions:
        return []
    return [Line((("  submissions", "dim"), *cells))]


def _hours(facts: RunFacts, length: float, room: int) -> Pieces:
    """Return the time axis of the charts: round times into the run, and its end."""
    end = wording.span(length) + (" now" if facts.run.is_live else "")
    most = max(1, room // 12)
    step = next(
        (each for each in _TICKS if length / each <= most), _TICKS[-1] * math.ceil(length / _TICKS[-1] / most)
    )
    cells = [*"0".ljust(max(1, room - len(end))), *end][:room]
    for number in range(1, int(length / step) + 1):
        text = wording.limit(number * step)
        place = round(room * number * step / length) - len(text) // 2
        if place + len(text) < room - len(end):
            cells[place : place + len(text)] = text
    return ((" " * (_SCALE + 2), "text"), ("".join(cells), "dim"))


def _calls(facts: RunFacts, history: CallHistory, width: int, height: int, drawing: Drawing) -> list[Line]:
    """Draw the latest attempt's model calls: totals, charts over time, the models, and the last calls."""
    spent = facts.latest_spending
    traffic = _traffic(facts, width, drawing)
    if not spent.models:
        return [Line(((f"  {_why_no_calls(facts)}", "dim"),)), *traffic]
    dot = _dot(drawing)
    cost: Pieces = ((f"  {short_cost(spent)}", "strong" if spent.cost is not None else "warn"),)
    parts: list[Pieces] = [cost, ((plural(spent.calls, "call"), "text"),)]
    if spent.errors:
        by_429 = f" ({spent.limited:,} by 429)" if spent.limited else ""
        parts.append(((f"{spent.errors:,} failed{by_429}", "warn"),))
    if spent.refused:
        parts.append(((f"{spent.refused:,} not sent", "warn"),))
    tokens: list[Pieces] = [((text, "text"),) for text in tokens_in_words(spent)]
    lines = [
        Line(joined(parts, dot, width)),
        *_budgets(facts, drawing),
        Line((("  tokens ", "dim"), *joined(tokens, dot, width - 9))),
        Line(_pace(history, dot, width, drawing)),
    ]
    for text in _caveats(facts):
        lines.append(Line(((f"  {foreign(text, width - 3).rstrip()}", "warn"),)))
    course: list[Line] = []
    attempt = facts.attempt
    if history.came and attempt is not None and attempt.started_at is not None:
        room, begin = width - 2, attempt.started_at
        took = max(_length(facts, drawing), 60.0)
        counts = history.counts(begin, begin + took, max(10, min(60, room // 2)))
        seconds = counts[1][0]
        drawn = Series(
            points=counts,
            span=(0.0, took),
            role="running" if facts.run.is_live else "dim",
            number=lambda value: f"{value:.0f}",
            floor=0.0,
            steps=True,
        )
        rows = max(3, min(6, height // 4))
        plotted = chart(drawn, room, rows, drawing.signs, ascii_only=drawing.signs.bar_parts == " ")
        course = [
            Line(),
            Line(((f"  calls per {wording.span(seconds)}", "dim"),)),
            *map(Line, plotted),
        ]
    # In few lines the last calls are more useful than the charts.
    is_short = height < _LINES_FOR_COURSE
    lines += [] if is_short else course
    most_used = sorted(spent.models, key=lambda each: (-each.input_tokens, each.model))
    drawing = Drawing(drawing.now, drawing.signs)
    names = "model provider calls failed in cached to_cache out reasoned cost"
    models = Table(MODEL_USE.columns(names), most_used, width, drawing)
    lines += [Line(), models.heading()]
    lines += [models.line(each, key=("model", *MODEL_USE.key(each))) for each in most_used]
    # The table above names the model if all calls are of one.
    model = " model" if len(most_used) > 1 else ""
    names = f"came{model} outcome status in cached out reasoned first total problem"
    number = facts.attempt.number if facts.attempt is not None else 0
    calls = [CallRow(number, call) for call in history.last]
    table = Table(
        CALL.columns(names, came={"title": "last calls", "width": 10}, status={"title": ""}),
        calls,
        width,
        drawing,
    )
    lines += [Line(), table.heading()]
    lines += [table.line(row, key=("call", CALL.key(row))) for row in reversed(calls)]
    return [*lines, *(course if is_short else []), *traffic]


_LINES_FOR_COURSE = 24


def _traffic(facts: RunFacts, width: int, drawing: Drawing) -> list[Line]:
    """List the traffic through the proxy, counted in bytes only; empty without a proxy."""
    if not facts.traffic:
        return []
    table = Table(TRAFFIC.fields, facts.traffic, width, Drawing(0.0, drawing.signs))
    lines = [table.line(each, key=("host", TRAFFIC.key(each))) for each in facts.traffic]
    return [Line(), table.heading(), *lines]


def _why_no_calls(facts: RunFacts) -> str:
    conditions = facts.sweep.conditions
    if conditions.models.gateway:
        return "no model call yet"
    if conditions.network == "models":
        return "calls pass by the proxy, where bytes alone are counted; --gateway counts tokens too"
    return "model calls are not counted: the sweep was launched without --gateway"


def _caveats(facts: RunFacts) -> Iterable[str]:
    """Yield notes about figures that are unknown or estimated."""
    spent = facts.latest_spending
    if spent.unpriced:
        yield f"no price of {named(spent.unpriced)}: name it in [model_prices] of config.toml"
    if facts.price_problem:
        yield facts.price_problem
    if spent.estimated:
        yield f"~ tokens of {plural(spent.estimated, 'call')} are an estimate: no provider has reported them"
    earlier = facts.spending.calls - spent.calls
    if earlier:
        cost = money(facts.spending.least_cost - spent.least_cost)
        yield f"earlier attempts: {plural(earlier, 'call')}, {cost}"


def _budgets(facts: RunFacts, drawing: Drawing) -> Iterable[Line]:
    """Draw how much of each budget of the run is used."""
    budget, spent = facts.sweep.conditions.models.budget, facts.latest_spending
    kinds: tuple[tuple[float, float | None, Callable[[float], str]], ...] = (
        (spent.charged, budget.usd, money),
        (spent.tokens, budget.tokens, lambda count: f"{many(int(count))} tokens"),
        (spent.calls, budget.calls, lambda count: f"{count:,.0f} calls"),
    )
    for used, limit, number in kinds:
        if limit:
            share = used / limit
            role: Role = "bad" if share >= 1 else "warn" if share >= MOST_OF_BUDGET else "running"
            full, empty = bar(share, 20, drawing.signs)
            left = (
                f" {100 * min(share, 9.99):.0f} % of {number(limit)}, {number(max(0.0, limit - used))} left"
            )
            yield Line((("  budget ", "dim"), (full, role), (empty, "faint"), (left, "text")))


def _pace(history: CallHistory, dot: Piece, width: int, drawing: Drawing) -> Pieces:
    """Write the state of the last call, and the typical duration of calls."""
    if not history.last:
        return (("  reading calls", "dim"),)
    call = history.last[-1]
    ago = wording.age(drawing.now - call.at - call.seconds)
    parts: list[Pieces] = [
        (
            (f"  last call {'now' if ago == 'now' else f'{ago} ago'}, ", "dim"),
            (call.outcome.value, "dim" if call.outcome is CallOutcome.OK else "warn"),
        )
    ]
    for name, typical in (
        ("first byte", history.typical_first_seconds()),
        ("whole call", history.typical_seconds()),
    ):
        if typical is not None:
            median, most = typical
            parts.append(((f"{name} {median:.2f} s, 95 % below {most:.2f} s", "dim"),))
    return joined(parts, dot, width)


def _files(listing: Listing, width: int, drawing: Drawing) -> list[Line]:
    """List the attempt's directory; the names are untrusted."""
    table = Table(_file_columns(drawing), listing.entries, width, drawing)
    lines = [table.heading(), *(table.line(entry, key=entry.path) for entry in listing.entries)]
    note = f"  only the first {MOST_ENTRIES} are shown"
    return [*lines, Line(((note, "dim"),))] if listing.is_cut else lines


def _size_or_kind(entry: FileEntry) -> str:
    if entry.kind == "folder":  # whose name ends in a slash
        return ""
    return wording.size(entry.bytes) if entry.kind == "file" else entry.kind


def _file_columns(drawing: Drawing) -> list[Column[FileEntry]]:
    def age(entry: FileEntry) -> str:
        return "" if entry.kind == "folder" else wording.age(drawing.now - entry.changed_at)

    return [
        Column("name", lambda entry: f"{'  ' * entry.depth}{plain(entry.name)}", 10, grows=80),
        Column("size", _size_or_kind, 9, right=True, role="dim"),
        Column("changed", age, 7, right=True, role="dim"),
    ]


@dataclass(frozen=True)
class _Setting:
    """One line of the configuration.

    Attributes:
        usual: whether it is the default; None if it has none.
        is_warning: whether it puts the result in doubt.
    """

    name: str
    text: str
    usual: bool | None = None
    is_warning: bool = False


def _config(
    facts: RunFacts,
    order: Order | None,
    width: int,
    drawing: Drawing,
    *,
    doubts_first: bool = True,
    without: Sequence[str] = (),
) -> list[Line]:
    """List what puts the result in doubt, what differs from the defaults, and the rest of the configuration."""
    settings = [each for each in _settings(facts, order, drawing) if each.name not in without]
    doubts = [each for each in settings if each.is_warning]
    unusual = [each for each in settings if each.usual is False and not each.is_warning]
    rest = [each for each in settings if each.usual is not False and not each.is_warning]
    groups = [("differs from the defaults", unusual), ("configuration", rest)]
    groups.insert(0 if doubts_first else 2, ("to know before the score is used", doubts))
    table = Table(_CONFIG, (), width, drawing)
    lines: list[Line] = []
    for title, group in groups:
        if group:
            lines += [*[Line()] * bool(lines), Line(heading(title, width, drawing.signs))]
        for place, each in enumerate(group):
            # Long texts are wrapped rather than cut, since they are shown nowhere else.
            first, *more = cells_of(plain(each.text), max(20, width - _CONFIG_NAME - _CONFIG_AROUND)) or [""]
            role: Role = "warn" if each.is_warning else "text"
            key = (title, each.name, place)
            lines.append(table.line((each.name, ((first, role),)), key=key))
            lines += [table.line(("", ((part, role),)), key=(*key, part)) for part in more]
    return lines


def _settings(facts: RunFacts, order: Order | None, drawing: Drawing) -> Iterable[_Setting]:
    """Yield the requested configuration, that of the latest attempt, and its paths."""
    spec, attempt, usual = facts.sweep.spec, facts.attempt, usual_values()
    conditions, resources = spec.conditions, spec.conditions.resources
    kept = flat(spec)

    def option(name: str, field: str, text: str) -> _Setting:
        return _Setting(name, text, usual=kept[field] == usual[field])

    if facts.competition is not None:
        edition = edition_named(conditions.edition)
        for text in facts.competition.defects_in(edition):
            yield _Setting("known defect", text, is_warning=True)
    if spec.demo:
        yield _Setting("data", "synthetic, made for the demo: no result", is_warning=True)
    if attempt is not None and attempt.isolated is not None:
        text = "yes" if attempt.isolated else "no: only for agents that are trusted"
        yield _Setting("isolated", text, is_warning=not attempt.isolated)
    if attempt is not None and attempt.unenforced:
        yield _Setting("limits not enforced", names_of_limits(attempt.unenforced), is_warning=True)
    yield _Setting("agent", spec.agent_id)
    yield _Setting("agent version", facts.sweep.agent_version[:12])
    yield option("edition", "edition", conditions.edition)
    yield option("time limit", "time_limit_seconds", wording.limit(conditions.time_limit_seconds))
    yield option("runtime", "runtime", attempt.runtime if attempt else conditions.runtime)
    yield option("placement", "placement", attempt.placement if attempt else conditions.placement)
    if attempt is not None and attempt.job:
        yield _Setting("job", f"{attempt.job} on {attempt.node}" if attempt.node else attempt.job)
    yield option("network", "network", conditions.network)
    yield option("processors", "cpus", f"{resources.cpus:g}")
    memory = wording.size(resources.memory_bytes) if resources.memory_bytes else "not limited"
    yield option("memory", "memory_bytes", memory)
    yield option("GPUs", "gpus", "all" if resources.gpus < 0 else str(resources.gpus))
    yield option("runs per GPU", "runs_per_gpu", str(resources.runs_per_gpu))
    if conditions.models.gateway:
        yield option("model gateway", "gateway", ", ".join(conditions.models.gateway))
    if conditions.obfuscated:
        yield option("description", "obfuscated", "obfuscated")
    if attempt is not None:
        yield _Setting(
            "machine", (attempt.hardware.in_words() if attempt.hardware else "") or wording.UNKNOWN
        )
        yield _Setting("image digest", attempt.image or "none")
        if attempt.recipe:
            yield _Setting("image built from", attempt.recipe)
        yield _Setting("directory", str(facts.directory))
    for name, text in order_facts(order) if order is not None else ():
        yield _Setting(name, text)
    if facts.competition is not None:
        metric = facts.competition.metric.name
        arrow = better_arrow(facts.competition.thresholds, drawing.signs)
        yield _Setting("metric", f"{metric}, {wording.better(facts.competition.thresholds)} {arrow}")


_CONFIG_NAME, _CONFIG_AROUND = 16, 4
_CONFIG = (
    Column[tuple[str, Cell]]("", lambda row: row[0], _CONFIG_NAME, role="dim"),
    Column[tuple[str, Cell]]("", lambda row: row[1], 10, grows=REST),
)
