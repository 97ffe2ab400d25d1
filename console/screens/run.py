"""The run screen: one run's log, attempts, submissions, resources, model calls, files and configuration."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.containers import Container
from textual.widget import Widget

from console import wording
from console.actions import runs
from console.logs.reader import last_lines
from console.sanitize import plain
from console.screens.dialogs import open_classify
from console.screens.logs import FileScreen, LogScreen
from console.tui.keys import Context
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    bar,
    cells_of,
    cut,
    foreign,
    heading,
    joined,
    spread,
    spread_fitting,
    width_of,
)
from console.tui.screen import Queries
from console.tui.theme import Role, Signs, better_arrow
from console.tui.widgets.chart import Mark, Series, chart
from console.tui.widgets.line_list import LineList
from console.tui.widgets.log_view import LogPane
from console.tui.widgets.painted import Painted
from console.tui.widgets.ruler import medal_role, ruler
from console.tui.widgets.run_cell import draw_run, outcome_role, outcome_sign, state_role
from console.tui.widgets.table import REST, Column, Table
from console.views.calls import MOST_OF_BUDGET, CallHistory, many, money, short_cost, tokens_in_words
from console.views.lists import Marks
from console.views.run import (
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
from engine.model_costs import ModelTotal, named
from environment.gateway.records import SUCCESSFUL, ModelCall
from environment.runner.protocol import Order
from state.lifecycle import ENGINE, Outcome
from state.records import Attempt, Event, Run, Submission, Sweep
from state.usage.network_use import NetworkUse

if TYPE_CHECKING:
    from console.views.code import Wanted

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
_PANE_CAUSE_LINES = 4
_PANE_EVIDENCE_LINES = 3


class RunScreen(LogScreen):
    """The run's data at the top, one of seven panes below."""

    CONTEXTS = ("run", "submissions", "log")
    OWN_CONTEXTS = 2
    AUTO_FOCUS = ""

    def __init__(self, run_id: int, *, pane: str = "log") -> None:
        super().__init__()
        self._run_id = run_id
        self._pane = pane
        self._facts: RunFacts | None = None
        self._marks: Marks[int] = Marks()
        # The data that panes read from files, by pane.
        self._read: dict[str, Any] = {}

    def body(self) -> Iterable[Widget]:
        """Return the header, the names of the panes, and the log or a list."""
        yield Painted(id="header")
        yield Painted(id="panes")
        with Container(id="body"):
            yield LogPane(id="log")
            yield LineList(id="list")

    def queries(self) -> Queries:
        """Return the query for this run."""
        ask = partial(run_facts, run_id=self._run_id, config_file=self.app.places.config_file)
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
        return ("run", "log") if self._pane == "log" else ("run", "list")

    def on_mount(self) -> None:
        """Open the requested pane."""
        self._show_pane(self._pane)

    def tick_seconds(self) -> float:
        """Return a shorter interval for runs with a short time limit."""
        return self.tick_seconds_within(self._facts.sweep.spec.time_limit_seconds if self._facts else None)

    def tick(self) -> None:
        """Redraw, and read growing files again."""
        super().tick()
        if self._pane in _GROWING and self._facts is not None and self._facts.run.is_live:
            self._fetch()

    def redraw(self) -> None:
        """Draw the header and the pane."""
        facts = self._facts
        if facts is None:
            return
        width, signs = self.size.width, self.app.signs
        self.query_one("#header", Painted).show(*_header(facts, width, self.app.now(), signs))
        self.query_one("#panes", Painted).show(_pane_names(self._pane, width, signs))
        if self._pane == "log":
            self.query_one(LogPane).draw_status()
        else:
            self.query_one("#list", LineList).show(self._lines(facts))

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
                        self.app.push_screen(FileScreen(snapshot))
                    else:
                        self.app.say(
                            "the file is gone: older snapshots are thinned out when they take much room"
                        )

    def action_code(self) -> None:
        """Open the code at the submission under the cursor, or at the best one."""
        from console.screens.code import CodeScreen  # imported here, since the log is needed first
        from console.views.code import Wanted

        if self._facts is not None and self._facts.attempt is not None:
            chosen = self._submission()
            which = "" if chosen is None else str(chosen.sequence)
            self.app.push_screen(CodeScreen(Wanted(self._run_id, self._facts.attempt.number, which)))
        else:
            self.app.say("the run was never launched")

    def action_mark(self) -> None:
        """Mark the submission under the cursor, or remove its mark."""
        chosen = self._submission()
        if chosen is not None:
            self._marks = self._marks.toggled(chosen.id)
            self.redraw()

    def action_diff(self) -> None:
        """Compare two submissions, or on the timeline pane an attempt with the previous one."""
        from console.screens.code import DiffScreen

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
            self.app.act(runs.relaunch, [self._facts.run])

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

    def _submission(self) -> Submission | None:
        """The submission under the cursor."""
        if self._facts is None or self._pane != "submissions":
            return None
        key = self.query_one("#list", LineList).key
        return next((each for each in self._facts.submissions if each.id == key), None)

    def _pair(self) -> tuple[Wanted, Wanted] | str:
        """Return the two versions to compare, the earlier one first, or why they can't be compared."""
        from console.views.code import Wanted

        facts = self._facts
        if facts is None or facts.attempt is None:
            return "the run was never launched"
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
        self.query_one(LogPane).view.show(
            facts.log, grows=facts.attempt is not None and facts.attempt.ended_at is None
        )
        if other:
            self._read = {}
            self._fetch()

    def _lines(self, facts: RunFacts) -> list[Line]:
        shown = self.query_one("#list", LineList)
        width = shown.line_width
        height, now, signs = shown.size.height, self.app.now(), self.app.signs
        if self._pane == "timeline":
            return _timeline(facts, self.app.now(), width, signs)
        if self._pane == "submissions":
            drawn = _score_chart(facts, width - 2, max(5, min(14, height // 2 - 3)), now, signs)
            checks = self._read.get("submissions", Validations())
            return [*drawn, *_submissions(facts, checks, self._marks, now, width, signs)]
        if self._pane == "resources":
            return _resources(facts, self._read.get("resources"), width - 2, height, now, signs)
        if self._pane == "calls":
            return _calls(facts, self._read.get("calls", CallHistory()), width, height, now, signs)
        if self._pane == "files":
            return _files(self._read.get("files", Listing()), width, signs)
        return _config(facts, self._read.get("config"), width, now, signs)

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


def _header(facts: RunFacts, width: int, now: float, signs: Signs) -> tuple[Pieces, ...]:
    """Draw the run's name, state and standing."""
    run, dot = facts.run, _dot(signs)
    state = [_state(facts, now, signs, with_bar=width >= 100), _state(facts, now, signs, with_bar=False)]
    name = foreign(run.competition_id, max(12, min(60, width - 10 - width_of(state[1])))).rstrip()
    place: list[Pieces] = [((f" {name}", "strong"),), ((f"seed {run.seed}", "text"),)]
    if run.attempts:
        place.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        place.append(((f"re-rolled {run.rerolls}{signs.times}", "warn"),))
    place.append(((foreign(run.sweep_id, 30).rstrip(), "dim"),))
    room = width - width_of(state[1]) - 1
    lines = [spread_fitting([joined(place, dot, room)], state, width), _standing(facts, now, signs, width)]
    if run.failure_class is not None:
        lines.append(_failure(facts, width))
    elif run.is_live and facts.attempt is not None and wording.is_waiting(facts.attempt):
        role: Role = "warn" if wording.waits_for_people(facts.attempt) else "text"
        lines.append(((f" {foreign(wording.placed(facts.attempt, now), width - 2).rstrip()}", role),))
    elif run.grading_problem:
        trouble = foreign(wording.grading_trouble(run, now), width - 2).rstrip()
        lines.append(((f" {trouble}", "warn"),))
    lines += _notes(run, width, now, signs)
    return tuple(lines)


def _notes(run: Run, width: int, now: float, signs: Signs) -> list[Pieces]:
    """Draw its tags and its note, with their author if there is room."""
    if not (run.tags or run.note):
        return []
    noted = foreign(wording.annotation(run), 2000).rstrip()
    by: Pieces = ((f"   {wording.annotated_by(run, now)} ", "dim"),)
    pieces: Pieces = ((f" {signs.noted} ", "accent"), (noted, "text"))
    fits = width_of((*pieces, *by)) <= width
    return [spread(pieces, by, width) if fits else cut(pieces, width, signs.ellipsis)]


def _dot(signs: Signs) -> Piece:
    return f" {signs.dot} ", "faint"


def _pane_names(current: str, width: int, signs: Signs) -> Pieces:
    """Draw the names of the panes, the current one standing out."""
    pieces: list[Piece] = [(" ", "text")]
    for name in PANES:
        pieces += [(name.capitalize(), "accent" if name == current else "dim"), ("   ", "text")]
    rule = signs.rule * max(0, width - sum(len(text) for text, _ in pieces) - 1)
    return (*pieces, (rule, "faint"))


def _state(facts: RunFacts, now: float, signs: Signs, *, with_bar: bool) -> Pieces:
    run, limit = facts.run, facts.sweep.spec.time_limit_seconds
    drawn = draw_run(run, signs, now, limit, facts.attempt)
    word = wording.OUTCOME_WORDS[run.outcome] if run.outcome else run.state.value
    if run.started_at is None:
        return ((f"{drawn.sign} {word} ", state_role(run)),)
    took = (run.ended_at or now) - run.started_at
    text = f"{wording.duration(took)} of {wording.limit(limit)}" if run.ended_at else ""
    pieces: list[Piece] = [
        (f"{drawn.sign} {word} ", state_role(run)),
        (text or wording.of_limit(took, limit), "text"),
        (" ", "text"),
    ]
    if run.is_live and with_bar:
        full, empty = bar(took / limit, 20, signs)
        pieces += [(full, "running"), (empty, "faint"), (" ", "text")]
    return tuple(pieces)


def _standing(facts: RunFacts, now: float, signs: Signs, width: int) -> Pieces:
    run = facts.run
    stands: list[Piece] = [(" ", "text")]
    if run.standing is None:
        stands.append(("nothing graded" if run.has_ended else "nothing graded yet", "dim"))
    else:
        stands += [
            ("now " if run.is_live else "", "dim"),
            (wording.OUTCOME_WORDS[run.standing], outcome_role(run.standing)),
        ]
    if run.score is not None:
        stands.append((f" {wording.score(run.score, 9)}", "text"))
        if facts.competition is not None:
            arrow = better_arrow(facts.competition.thresholds, signs)
            stands.append((f" {arrow}", "dim"))
    groups: list[Pieces] = [tuple(stands)]
    best = facts.best
    if best is not None and best.score != run.score:
        word = f" {wording.OUTCOME_WORDS[best.standing]}" if best.standing is not None else ""
        groups.append(
            (("best ", "dim"), (f"{wording.score(best.score, 9)}{word}", outcome_role(best.standing)))
        )
    if facts.percentile is not None:
        groups.append(((wording.rank(facts.percentile, short=width < _WIDE), "text"),))
    if run.suspected and run.failure_class is None:
        groups.append(((f"suspected: {run.suspected}", "warn"),))
    if facts.attempt is not None and facts.attempt.isolated is False:
        groups.append((("not isolated", "warn"),))
    if run.is_live and facts.attempt is not None and facts.attempt.node:
        groups.append(((f"on {foreign(facts.attempt.node, 40).rstrip()}", "dim"),))
    if facts.competition is not None:
        cuts = facts.competition.thresholds
        bronze, median = wording.score(cuts.bronze, 8), wording.score(cuts.median, 8)
        groups.append(((f"bronze {bronze}, median {median}", "dim"),))
    if run.is_live and run.last_activity_at is not None:
        quiet = wording.age(now - run.last_activity_at)
        groups.append((("last change " + ("now" if quiet == "now" else f"{quiet} ago"), "dim"),))
    if facts.submissions:
        valid = sum(each.valid is True for each in facts.submissions)
        text = f"{valid} valid of {wording.plural(len(facts.submissions), 'submission')}"
        groups.append(((text, "dim"),))
    if facts.spending.models:
        groups.append(((f"models {short_cost(facts.spending)}", "dim"),))
    return joined(groups, _dot(signs), width)


def _failure(facts: RunFacts, width: int) -> Pieces:
    run, attempt = facts.run, facts.attempt
    words = wording.failure(run)
    by = (
        f" (classified by {attempt.classified_by})"
        if attempt and attempt.classified_by not in ("", ENGINE)
        else ""
    )
    text = foreign(f"{run.failure_text}{by}", width - len(words) - 5).rstrip()
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
    facts: RunFacts, files: RunFiles | None, width: int, height: int, now: float, signs: Signs
) -> list[Pieces]:
    """Draw a run's pane beside a list: state, cause of failure, score over time, resources, last lines of the log.

    If that is too high, attempts are left out, then resources; the log fills the rest.
    """
    run, dot = facts.run, _dot(signs)
    seed = f"  seed {run.seed}"
    name: Pieces = (
        (f" {foreign(run.competition_id, width - len(seed) - 1).rstrip()}", "strong"),
        (seed, "text"),
    )
    state: list[Pieces] = [((" ", "text"), *_state(facts, now, signs, with_bar=False))]
    if run.attempts > 1:
        state.append(((f"attempt {run.attempts}", "dim"),))
    if run.rerolls:
        state.append(((f"re-rolled {run.rerolls}{signs.times}", "warn"),))
    head = [name, joined(state, dot, width), _standing(facts, now, signs, width), *_cause(facts, width, now)]
    head += _notes(facts.run, width, now, signs)
    chart_height = max(5, min(9, height // 4))
    curve = [line.pieces for line in _score_chart(facts, width - 1, chart_height, now, signs)]
    if not curve and facts.attempts:
        curve = [((" no score yet" if facts.run.is_live else " no score", "dim"),)]
    resources: list[Pieces] = []
    if files is not None and files.usage.latest is not None:
        titles = [kind.title(facts.run.is_live) for kind in _measured(facts, files.usage)]
        resources = [heading("resources", width, signs), *titles]
    attempts: list[Pieces] = []
    if facts.attempts:
        newest = facts.attempts[: -_PANE_ATTEMPTS - 1 : -1]
        table = Table(_attempt_columns(facts, now), newest, width, signs)
        shown = [table.heading(), *map(table.line, newest)]
        attempts = [heading("attempts", width, signs), *(line.pieces for line in shown)]
    else:
        attempts = [((f" never launched yet{_waiting(facts)}", "dim"),)]
    parts = [head, [heading("score over time", width, signs), *curve] if curve else [], resources, attempts]
    least = 0 if files is None or not files.log else 1 + _PANE_FEWEST_LOG_LINES
    for place in (3, 2):
        if facts.attempts and sum(map(len, parts)) + least > height:
            parts[place] = []
    lines = [line for part in parts for line in part]
    room = height - len(lines) - 1
    if least and room > 0:
        assert files is not None
        lines.append(heading("log", width, signs))
        lines += [((f" {foreign(text, width - 1).rstrip()}", "dim"),) for text in files.log[-room:]]
    return lines


def _cause(facts: RunFacts, width: int, now: float) -> list[Pieces]:
    """Write why a run failed or can't be graded, with the evidence, cut to the pane's lines."""
    run = facts.run
    if run.failure_class is not None:
        words, text, evidence = wording.failure(run), run.failure_text, ""
        if facts.attempt is not None:
            evidence = facts.attempt.evidence
        lines: list[Pieces] = [((f" {words}", "bad"),)]
        lines += [((f" {part}", "text"),) for part in _wrapped(text, width - 2)]
        return lines + [
            ((f" {foreign(row, width - 2).rstrip()}", "warn"),)
            for row in evidence.splitlines()[:_PANE_EVIDENCE_LINES]
            if row.strip() != text.strip()
        ]
    trouble = wording.grading_trouble(run, now)
    return [((f" {part}", "warn"),) for part in _wrapped(trouble, width - 2)] if trouble else []


def _wrapped(text: str, width: int) -> list[str]:
    harmless = plain(text.replace("\n", " "), limit=_PANE_CAUSE_LINES * width)
    return textwrap.wrap(harmless, max(1, width), max_lines=_PANE_CAUSE_LINES, placeholder=" ...")


def _timeline(facts: RunFacts, now: float, width: int, signs: Signs) -> list[Line]:
    """List attempts with the evidence of how they ended, then events, newest first."""
    attempts = Table(_attempt_columns(facts, now), facts.attempts, width, signs)
    lines = [attempts.heading()]
    for attempt in reversed(facts.attempts):
        lines.append(attempts.line(attempt, key=("attempt", attempt.number)))
        for row in attempt.evidence.splitlines()[:_EVIDENCE_LINES]:
            lines.append(Line(((" " * 11, "text"), (foreign(row, width - 13), "warn"))))
    if not facts.attempts:
        lines.append(Line(((f"  never launched yet{_waiting(facts)}", "dim"),)))
    events = Table(_EVENTS, facts.events, width, signs)
    lines += [Line(), events.heading()]
    return lines + [events.line(event, key=("event", event.id)) for event in facts.events]


def _how_it_ended(attempt: Attempt) -> str:
    if attempt.exit_signal is not None:
        return f"{attempt.exit_reason}, signal {attempt.exit_signal}"
    if attempt.exit_code is not None:
        return f"{attempt.exit_reason}, exit code {attempt.exit_code}"
    return attempt.exit_reason


def _what_came(attempt: Attempt) -> Pieces:
    what = wording.OUTCOME_WORDS[attempt.outcome] if attempt.outcome else attempt.failure_text
    role = outcome_role(attempt.outcome) if attempt.outcome else "bad"
    return ((what + (" (re-roll)" if attempt.reroll else ""), role),)


def _attempt_columns(facts: RunFacts, now: float) -> list[Column[Attempt]]:
    """Return the columns for the attempts of a run; the last one may be live or waiting for a node."""

    def is_live(attempt: Attempt) -> bool:
        return facts.run.is_live and attempt.ended_at is None and attempt is facts.attempts[-1]

    def took(attempt: Attempt) -> str:
        ended = now if is_live(attempt) else attempt.ended_at
        return "" if ended is None or attempt.started_at is None else wording.span(ended - attempt.started_at)

    def what(attempt: Attempt) -> Pieces:
        if not is_live(attempt):
            return _what_came(attempt)
        if wording.is_waiting(attempt):
            return ((wording.waits(attempt, now), "warn" if wording.waits_for_people(attempt) else "text"),)
        return ((facts.run.state.value, state_role(facts.run)),)

    return [
        Column("attempt", lambda attempt: str(attempt.number), 7),
        Column("began", lambda attempt: wording.date_and_time(attempt.created_at), 16, role="dim"),
        Column("took", took, 6, role="dim"),
        Column("ended", _how_it_ended, 8, grows=22, drop=1, role="dim"),
        Column("what", what, 10, grows=REST),
    ]


_EVENTS = (
    Column[Event]("events", lambda event: wording.date_and_time(event.at), 16, role="dim"),
    Column[Event]("", lambda event: event.kind, 20, role="dim"),
    Column[Event]("", lambda event: event.text, 10, grows=REST, gap=1),
)


def _waiting(facts: RunFacts) -> str:
    dataset = facts.dataset
    if dataset is None or dataset.state == "prepared":
        return ""
    problem = f": {foreign(dataset.problem, 80).rstrip()}" if dataset.problem else ""
    return f"; its dataset is {dataset.state}{problem}"


def _submissions(
    facts: RunFacts, checks: Validations, marks: Marks[int], now: float, width: int, signs: Signs
) -> list[Line]:
    """Draw the ruler, then list every snapshot of the submission, newest first."""
    lines: list[Line] = []
    if facts.competition is not None:
        drawn = ruler(facts.competition.thresholds, facts.run.score, width - 4, signs)
        lines += [Line(), *(Line((("  ", "text"), *pieces)) for pieces in drawn), Line()]
    if checks.count:
        text = f"  {wording.plural(checks.count, 'validation')} by the agent"
        if checks.last_at is not None:
            quiet = wording.age(now - checks.last_at)
            text += f", the last {'now' if quiet == 'now' else f'{quiet} ago'}"
        lines += [Line(((text, "dim"),)), Line()]
    if not facts.submissions:
        return [*lines, Line((("  no submission yet", "dim"),))]
    table = Table(
        [
            Column[Submission]("at", lambda each: wording.elapsed(each.elapsed_seconds), 6, role="dim"),
            Column("#", lambda each: str(each.sequence), 4, right=True, role="dim", drop=2),
            Column("", lambda each: _which(each, facts), 10, gap=1, role="accent"),
            Column("standing", lambda each: _standing_of(each, signs), 14),
            Column(_score_title(facts, signs), lambda each: _score(each.score), 11, right=True, gap=0),
            Column("size", lambda each: wording.size(each.bytes), 9, right=True, role="dim", drop=1),
            Column("message", _message, 7, grows=REST),
        ],
        facts.submissions,
        width,
        signs,
        mark=lambda each: each.id in marks,
    )
    lines.append(table.heading())
    return lines + [table.line(each, key=each.id) for each in reversed(facts.submissions)]


def _which(each: Submission, facts: RunFacts) -> str:
    """Return the marks of a submission: best, and final or, while the run is live, newest."""
    words = ["best"] if each == facts.best else []
    if each.final:
        words.append("final")
    elif facts.run.is_live and each == facts.submissions[-1]:
        words.append("now")
    return " ".join(words)


def _score_title(facts: RunFacts, signs: Signs) -> str:
    if facts.competition is None:
        return "score"
    return f"score {better_arrow(facts.competition.thresholds, signs)}"


def _standing_of(each: Submission, signs: Signs) -> Pieces:
    if each.standing is None:
        return (("being graded", outcome_role(None)),)
    words = f"{outcome_sign(each.standing, signs)} {wording.OUTCOME_SHORT[each.standing]}"
    return ((words, outcome_role(each.standing)),)


def _score(score: float | None) -> str:
    return "" if score is None else wording.score(score, 10)


def _message(each: Submission) -> Pieces:
    refused = each.standing in (Outcome.INVALID, Outcome.NO_SUBMISSION) or each.score is None
    return (((each.message or "") if refused else "", "warn"),)


def _score_chart(facts: RunFacts, width: int, height: int, now: float, signs: Signs) -> list[Line]:
    """Draw the score of every graded snapshot over the run's time, the better end on top."""
    points = [
        (each.elapsed_seconds, each.score)
        for each in facts.submissions
        if each.score is not None and math.isfinite(each.score)
    ]
    if facts.competition is None or not points:
        return []
    cuts = facts.competition.thresholds
    end = _length(facts, now)
    series = Series(
        # The last score is drawn until the end.
        points=[*points, (max(end, points[-1][0]), points[-1][1])],
        span=(0.0, max(end, 1.0)),
        role=medal_role(cuts, points[-1][1]),
        number=lambda value: wording.score(value, 9),
        marks=(
            Mark(cuts.gold, "gold", "gold"),
            Mark(cuts.silver, "silver", "silver"),
            Mark(cuts.bronze, "bronze", "bronze"),
            Mark(cuts.median, "median", "dim"),
        ),
        steps=True,
        upside_down=cuts.is_lower_better,
    )
    return [Line(pieces) for pieces in chart(series, width, height, signs, ascii_only=signs.bar_parts == " ")]


def _length(facts: RunFacts, now: float) -> float:
    """Return the duration of the latest attempt, so far if it is live."""
    attempt = facts.attempt
    if attempt is None or attempt.started_at is None:
        return 0.0
    return (attempt.ended_at or now) - attempt.started_at


@dataclass(frozen=True)
class _Kind:
    """A resource: its measured usage over time, and its limit or assigned amount."""

    name: str
    points: Sequence[Point]
    number: Callable[[float], str]
    limit: str = ""

    def title(self, is_live: bool) -> Pieces:
        """Return the resource's name, last value and maximum."""
        last, peak = self.points[-1][1], max(value for _at, value in self.points)
        return (
            (f"  {self.name:<12}", "strong"),
            (f"{'now' if is_live else 'last'} {self.number(last)}", "text"),
            (f"{self.limit}, peak {self.number(peak)}", "dim"),
        )


def _measured(facts: RunFacts, usage: UsageCurves) -> list[_Kind]:
    """Return the measured resources of the latest attempt."""
    spec = facts.sweep.spec
    memory = f" of {wording.size(spec.memory_bytes)}" if spec.memory_bytes else ""
    kinds = [
        _Kind(
            "processors", usage.cpu_percent, lambda value: f"{value / 100:.2f}", f" of {spec.cpus:g} planned"
        ),
        _Kind("memory", usage.memory_bytes, wording.size, memory),
        _Kind("disk", usage.disk_bytes, wording.size),
        _Kind("GPU busy", usage.gpu_percent, lambda value: f"{value:.0f} %"),
        _Kind("GPU memory", usage.gpu_memory_bytes, wording.size),
        _Kind("network", usage.network_rate, lambda value: f"{wording.size(value)}/s"),
        _Kind("processes", usage.processes, lambda value: f"{value:.0f}"),
    ]
    return [kind for kind in kinds if kind.points]


_FEWEST_CHART_ROWS = 3


def _resources(
    facts: RunFacts, usage: UsageCurves | None, width: int, height: int, now: float, signs: Signs
) -> list[Line]:
    """Draw the resource usage of the latest attempt over time, a chart for each measured resource."""
    if usage is None:
        return [Line((("  reading samples", "dim"),))]
    if usage.latest is None:
        return [Line((("  nothing has been measured yet", "dim"),))]
    measured = _measured(facts, usage)
    # Each chart also needs lines for its title, its time axis and, if there is room, an empty line.
    rows_each = height // max(1, len(measured))
    between = 0 if _FEWEST_CHART_ROWS + 2 <= rows_each < _FEWEST_CHART_ROWS + 3 else 1
    each = max(_FEWEST_CHART_ROWS, rows_each - 2 - between)
    lines: list[Line] = []
    start = facts.attempt.started_at if facts.attempt is not None else None
    for each_kind in measured:
        points = each_kind.points
        begin = points[0][0] if start is None else min(start, points[0][0])
        series = Series(
            points=[(at - begin, value) for at, value in points],
            span=(0.0, max(_length(facts, now), points[-1][0] - begin, 1.0)),
            role="running" if facts.run.is_live else "dim",
            number=each_kind.number,
            floor=0.0,
        )
        drawn = chart(series, width, min(each, 8), signs, ascii_only=signs.bar_parts == " ")
        title = each_kind.title(facts.run.is_live)
        lines += [
            Line(title, key=each_kind.name, selectable=True),
            *(Line(pieces) for pieces in drawn),
            *[Line()] * between,
        ]
    if not facts.sweep.spec.gpus:
        lines.append(Line((("  no GPUs were requested", "dim"),)))
    return lines


def _calls(
    facts: RunFacts, history: CallHistory, width: int, height: int, now: float, signs: Signs
) -> list[Line]:
    """Draw the latest attempt's model calls: totals, charts over time, the models, and the last calls."""
    spent = facts.latest_spending
    traffic = _traffic(facts, width, signs)
    if not spent.models:
        return [Line(((f"  {_why_no_calls(facts)}", "dim"),)), *traffic]
    dot = _dot(signs)
    cost: Pieces = ((f"  {short_cost(spent)}", "strong" if spent.cost is not None else "warn"),)
    parts: list[Pieces] = [cost, ((wording.plural(spent.calls, "call"), "text"),)]
    if spent.errors:
        by_429 = f" ({spent.limited:,} by 429)" if spent.limited else ""
        parts.append(((f"{spent.errors:,} failed{by_429}", "warn"),))
    if spent.refused:
        parts.append(((f"{spent.refused:,} not sent", "warn"),))
    tokens: list[Pieces] = [((text, "text"),) for text in tokens_in_words(spent)]
    lines = [
        Line(joined(parts, dot, width)),
        *_budgets(facts, signs),
        Line((("  tokens ", "dim"), *joined(tokens, dot, width - 9))),
        Line(_pace(history, now, dot, width)),
    ]
    for text in _caveats(facts):
        lines.append(Line(((f"  {foreign(text, width - 3).rstrip()}", "warn"),)))
    course: list[Line] = []
    attempt = facts.attempt
    if history.came and attempt is not None and attempt.started_at is not None:
        room, begin = width - 2, attempt.started_at
        took = max(_length(facts, now), 60.0)
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
        plotted = chart(drawn, room, rows, signs, ascii_only=signs.bar_parts == " ")
        course = [
            Line(),
            Line(((f"  calls in each {wording.duration(seconds)}", "dim"),)),
            *map(Line, plotted),
        ]
    # In few lines the last calls are more useful than the charts.
    is_short = height < _LINES_FOR_COURSE
    lines += [] if is_short else course
    most_used = sorted(spent.models, key=lambda each: (-(each.usage.input_tokens or 0), each.model))
    models = Table(_MODELS, most_used, width, signs)
    lines += [Line(), models.heading()]
    lines += [models.line(each, key=("model", each.provider, each.model)) for each in most_used]
    calls = Table(_LAST_CALLS, history.last, width, signs)
    lines += [Line(), calls.heading()]
    lines += [calls.line(each, key=("call", each.id)) for each in reversed(history.last)]
    return [*lines, *(course if is_short else []), *traffic]


_LINES_FOR_COURSE = 24


def _traffic(facts: RunFacts, width: int, signs: Signs) -> list[Line]:
    """List the traffic through the proxy, counted in bytes only; empty without a proxy."""
    if not facts.traffic:
        return []
    table = Table(_HOSTS, facts.traffic, width, signs)
    lines = [table.line(each, key=("host", each.host)) for each in facts.traffic]
    return [Line(), table.heading(), *lines]


def _why_no_calls(facts: RunFacts) -> str:
    spec = facts.sweep.spec
    if spec.gateway:
        return "no model call yet"
    if spec.network == "models":
        return "calls pass by the proxy, where bytes alone are counted; --gateway counts tokens too"
    return "model calls are not counted: the sweep was launched without --gateway"


def _caveats(facts: RunFacts) -> Iterable[str]:
    """Yield notes about figures that are unknown or estimated."""
    spent, replayed = facts.latest_spending, facts.sweep.spec.replay_of
    if replayed is not None:
        yield f"the calls of run {replayed} are replayed: no provider is asked or paid, and this is no result"
    if spent.unpriced:
        yield f"no price of {named(spent.unpriced)}: name it in [model_prices] of config.toml"
    if facts.price_problem:
        yield facts.price_problem
    if spent.estimated:
        yield f"~ tokens of {wording.plural(spent.estimated, 'call')} are an estimate: no provider has reported them"
    earlier = facts.spending.calls - spent.calls
    if earlier:
        cost = money(facts.spending.least_cost - spent.least_cost)
        yield f"earlier attempts: {wording.plural(earlier, 'call')}, {cost}"


def _budgets(facts: RunFacts, signs: Signs) -> Iterable[Line]:
    """Draw how much of each budget of the run is used."""
    spec, spent = facts.sweep.spec, facts.latest_spending
    kinds: tuple[tuple[float, float | None, Callable[[float], str]], ...] = (
        (spent.charged, spec.budget_usd, money),
        (spent.tokens, spec.budget_tokens, lambda count: f"{many(int(count))} tokens"),
        (spent.calls, spec.budget_calls, lambda count: f"{count:,.0f} calls"),
    )
    for used, limit, number in kinds:
        if limit:
            share = used / limit
            role: Role = "bad" if share >= 1 else "warn" if share >= MOST_OF_BUDGET else "running"
            full, empty = bar(share, 20, signs)
            left = (
                f" {100 * min(share, 9.99):.0f} % of {number(limit)}, {number(max(0.0, limit - used))} left"
            )
            yield Line((("  budget ", "dim"), (full, role), (empty, "faint"), (left, "text")))


def _pace(history: CallHistory, now: float, dot: Piece, width: int) -> Pieces:
    """Write the state of the last call, and the typical duration of calls."""
    if not history.last:
        return (("  reading calls", "dim"),)
    call = history.last[-1]
    ago = wording.age(now - call.at - call.seconds)
    parts: list[Pieces] = [
        (
            (f"  last call {'now' if ago == 'now' else f'{ago} ago'}, ", "dim"),
            (call.outcome.value, "dim" if call.outcome in SUCCESSFUL else "warn"),
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


def _tokens(count: int | None, *, estimated: bool = False) -> str:
    return "" if count is None else f"{'~' if estimated else ''}{many(count)}"


def _cost_of(total: ModelTotal) -> str:
    if not total.calls:
        return f"{total.refused:,} not sent"
    return "unknown" if total.cost is None else money(total.cost)


def _outcome_of_call(call: ModelCall) -> Pieces:
    if call.outcome in SUCCESSFUL:
        return ((call.outcome.value, "good"),)
    return ((f"{call.outcome.value} {call.status or ''}".rstrip(), "warn"),)


_MODELS = (
    Column[ModelTotal]("model", lambda each: each.model, 10, grows=48),
    Column[ModelTotal]("provider", lambda each: each.provider, 10, role="dim", drop=3),
    Column[ModelTotal]("calls", lambda each: f"{each.calls:,}", 7, right=True, gap=1),
    Column[ModelTotal](
        "failed", lambda each: f"{each.errors:,}" if each.errors else "", 6, right=True, gap=1, drop=4
    ),
    Column[ModelTotal]("in", lambda each: _tokens(each.usage.input_tokens), 7, right=True),
    Column[ModelTotal](
        "cached", lambda each: _tokens(each.usage.cached_tokens), 7, right=True, gap=1, role="dim", drop=2
    ),
    Column[ModelTotal](
        "written",
        lambda each: _tokens(each.usage.cache_write_tokens),
        7,
        right=True,
        gap=1,
        role="dim",
        drop=5,
    ),
    Column[ModelTotal]("out", lambda each: _tokens(each.usage.output_tokens), 7, right=True),
    Column[ModelTotal](
        "reasoning",
        lambda each: _tokens(each.usage.reasoning_tokens),
        9,
        right=True,
        gap=1,
        role="dim",
        drop=1,
    ),
    Column[ModelTotal]("cost", _cost_of, 12, right=True, gap=1),
)
_LAST_CALLS = (
    Column[ModelCall]("last calls", lambda each: wording.clock_seconds(each.at), 10, role="dim"),
    Column[ModelCall]("model", lambda each: each.model or each.asked_model, 10, grows=40),
    Column[ModelCall]("outcome", _outcome_of_call, 10, gap=1),
    Column[ModelCall](
        "in", lambda each: _tokens(each.usage.input_tokens, estimated=each.estimated), 7, right=True, gap=1
    ),
    Column[ModelCall](
        "cached", lambda each: _tokens(each.usage.cached_tokens), 7, right=True, gap=1, role="dim", drop=3
    ),
    Column[ModelCall](
        "out", lambda each: _tokens(each.usage.output_tokens, estimated=each.estimated), 7, right=True, gap=1
    ),
    Column[ModelCall](
        "reasoning",
        lambda each: _tokens(each.usage.reasoning_tokens),
        9,
        right=True,
        gap=1,
        role="dim",
        drop=4,
    ),
    Column[ModelCall](
        "first s",
        lambda each: "" if each.first_seconds is None else f"{each.first_seconds:.2f}",
        7,
        right=True,
        gap=1,
        role="dim",
        drop=2,
    ),
    Column[ModelCall]("total s", lambda each: f"{each.seconds:.1f}", 7, right=True, gap=1, role="dim"),
    Column[ModelCall]("problem", lambda each: each.problem, 8, grows=REST, drop=1, role="warn"),
)


_HOSTS = (
    Column[NetworkUse]("by bytes only, at", lambda each: each.host, 20, grows=60),
    Column[NetworkUse]("connections", lambda each: f"{each.connections:,}", 11, right=True, gap=1),
    Column[NetworkUse]("sent", lambda each: wording.size(each.sent_bytes), 9, right=True, gap=1),
    Column[NetworkUse]("received", lambda each: wording.size(each.received_bytes), 9, right=True, gap=1),
)


def _files(listing: Listing, width: int, signs: Signs) -> list[Line]:
    """List the attempt's directory; the names are untrusted."""
    table = Table(_FILES, listing.entries, width, signs)
    lines = [table.heading(), *(table.line(entry, key=entry.path) for entry in listing.entries)]
    note = f"  only the first {MOST_ENTRIES} are shown"
    return [*lines, Line(((note, "dim"),))] if listing.is_cut else lines


def _size_or_kind(entry: FileEntry) -> str:
    return wording.size(entry.bytes) if entry.kind == "file" else entry.kind


_FILES = (
    Column[FileEntry]("size", _size_or_kind, 9, right=True, role="dim"),
    Column[FileEntry]("name", lambda entry: f"{'  ' * entry.depth}{entry.name}", 10, grows=REST),
)


def _config(facts: RunFacts, order: Order | None, width: int, now: float, signs: Signs) -> list[Line]:
    """List the requested configuration, that of the latest attempt, and its paths."""
    spec, attempt = facts.sweep.spec, facts.attempt
    machine = attempt.hardware.in_words() if attempt and attempt.hardware else ""
    isolation = {None: wording.UNKNOWN, True: "isolated", False: "not isolated: trusted agents only"}
    rows = [
        ("agent", spec.agent_id),
        ("agent version", facts.sweep.agent_version[:12]),
        ("edition", spec.edition),
        ("time limit", wording.limit(spec.time_limit_seconds)),
        ("runtime", attempt.runtime if attempt else spec.runtime),
        ("placement", (wording.placed(attempt, now) if attempt else "") or spec.placement),
        ("isolation", isolation[attempt.isolated if attempt else None]),
        *([("limits not held", attempt.not_held)] if attempt and attempt.not_held else []),
        ("network", spec.network),
        ("processors", f"{spec.cpus:g}"),
        ("memory", wording.size(spec.memory_bytes) if spec.memory_bytes else "not limited"),
        ("GPUs", "all" if spec.gpus < 0 else str(spec.gpus)),
        ("machine", machine or wording.UNKNOWN),
        ("image digest", (attempt.image if attempt else "") or "none"),
        *([("image built from", attempt.recipe)] if attempt and attempt.recipe else []),
        ("directory", str(facts.directory) if attempt else wording.UNKNOWN),
    ]
    if order is not None:
        rows += order_facts(order)
    if facts.competition is not None:
        metric = facts.competition.metric.name
        arrow = better_arrow(facts.competition.thresholds, signs)
        rows.append(("metric", f"{metric}, {wording.better(facts.competition.thresholds)} {arrow}"))
        rows += [
            ("known defect", text)
            for text in facts.competition.defects_in("corrected" if spec.edition == "corrected" else "v1")
        ]
    table = Table(_CONFIG, rows, width, signs)
    lines = []
    for place, (name, text) in enumerate(rows):
        # Long texts are wrapped rather than cut, since they are shown nowhere else.
        first, *more = cells_of(plain(text), max(20, width - _CONFIG_NAME - _CONFIG_AROUND)) or [""]
        lines.append(table.line((name, first), key=(name, place)))
        lines += [table.line(("", part), key=(name, place, part)) for part in more]
    return lines


_CONFIG_NAME, _CONFIG_AROUND = 16, 4
_CONFIG = (
    Column[tuple[str, str]]("", lambda row: row[0], _CONFIG_NAME, role="dim"),
    Column[tuple[str, str]]("", lambda row: row[1], 10, grows=REST),
)
