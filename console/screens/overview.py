"""The overview screen: the progress of sweeps, everything that needs a person, and recent events."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from rich.cells import cell_len
from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.actions import need as need_actions
from mlebench_console.console.actions import run as run_actions
from mlebench_console.console.fields import REST, Cell, Forms, NounField, Rest, Row, natural
from mlebench_console.console.nouns.competition import ORDER
from mlebench_console.console.nouns.costs import cost_forms
from mlebench_console.console.nouns.event import common_figures, sweeps_in_words
from mlebench_console.console.nouns.need import group_text, splits_of
from mlebench_console.console.nouns.outcomes import outcome_role
from mlebench_console.console.nouns.run import (
    IDLE_LETTER,
    LATE_LETTER,
    UNGRADABLE_LETTER,
    draw_kind,
)
from mlebench_console.console.pieces import (
    Line,
    cells_of,
    cut,
    fit,
    fitting,
    foreign,
    heading,
    joined,
    shared_out,
    told_apart,
    width_of,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.screen import NOT_READ, ConsoleScreen, Queries
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.overview import Happening, Overview, overview
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.causes import CauseGroup, CauseKind, cause_now, recorded_cause
from mlebench_console.engine.needs.need import Need, NeedKind
from mlebench_console.engine.needs.needs import Needs
from mlebench_console.engine.needs.standing import SweepStanding
from mlebench_console.engine.options.sweep import read_duration
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import plural
from mlebench_console.state.event_records import Event, EventKind, EventSeverity
from mlebench_console.state.lifecycle import RunState, SweepState
from mlebench_console.state.records import Run, Sweep


@dataclass(frozen=True)
class Target:
    """What a line opens, and the key of its need."""

    place: str
    sweep_id: str | None = None
    run_id: int | None = None
    cause: str = ""


# The prompts for reasons: label and hint.
_REASONS = {
    "acknowledge": (
        "acknowledge '{}', because",
        "a reason; back when another run joins",
        "acknowledge",
    ),
    "snooze": ("snooze '{}' for how long, and why:", "8h driver reset, ticket 12", "snooze"),
}
_SNOOZE = "8h "
_NO_RUNS = "put the cursor on runs that need you"
# The most runs listed below a group; its sweep's screen lists all.
_MOST_OF_GROUP = 200
_MOST_GROUPS = 100
# The signs of what is wrong with runs that have not failed.
_LIVE_LETTERS = {
    CauseKind.IDLE: IDLE_LETTER,
    CauseKind.LATE: LATE_LETTER,
    CauseKind.UNGRADABLE: UNGRADABLE_LETTER,
}
# On narrower screens only the footer shows keys.
_HINTED_WIDTH = 100


class OverviewScreen(ConsoleScreen):
    """One list of sweeps, needs and recent events."""

    CONTEXTS = ("overview", "list")
    MODE = "overview"

    def __init__(self) -> None:
        super().__init__()
        self._found: Overview | None = None
        self._listed = Needs()
        self._opened: frozenset[str] = frozenset()
        self._with_acknowledged = False
        self._with_older = False
        self._asked_about: Need | None = None
        self._has_begun = False
        self._began_on: Hashable | None = None

    def body(self) -> Iterable[Widget]:
        """Return the list and the prompts for reasons."""
        yield LineList(id="all")
        for name, (sign, hint, done) in _REASONS.items():
            yield Prompt(sign, hint, id=name, done=done)

    def queries(self) -> Queries:
        """Return the query for the overview."""
        config_file = self.app.places.config_file
        return {"overview": (lambda database: overview(database, config_file, self.app.now()), self._take)}

    @property
    def lists_troubles(self) -> bool:
        """Whether the list shows the problems, so that no notice above it has to."""
        return self._found is not None

    def chosen_runs(self) -> Sequence[Run]:
        """The run of the line, or all of its group."""
        return self._runs()

    def chosen_sweep(self) -> Sweep | None:
        """The sweep of the line."""
        target = self._target()
        known = self._found.sweeps if self._found is not None else ()
        return next((line.sweep for line in known if target and line.sweep.id == target.sweep_id), None)

    def redraw(self) -> None:
        """Draw the list for the current time."""
        if self._found is None:
            return
        shown = self.query_one("#all", LineList)
        self._listed = self.app.needs_of(self._found.needs)
        lines = _OverviewLines(self._found, shown.line_width, self.app.drawing, self.app.engine)
        opened = _Opened(self._opened, self._with_acknowledged, self._with_older)
        shown.show(lines.lines(self._listed, opened, shown.size.height))
        if not self._has_begun:
            self._begin(shown)
        self.refresh_frame()

    def on_line_list_cursor_moved(self) -> None:
        """Show what the keys do on the new line."""
        self.refresh_frame()

    def label_of(self, key: Key) -> str:
        """Name what a key would act on: the run, or how many runs; empty where it would do nothing."""
        target, need = self._target(), self._need()
        label = super().label_of(key)
        if key.context != "overview" or target is None:
            return label
        if key.id == "overview.open":
            return self._opens(target, need)
        if key.id == "overview.next":
            return label if self._listed.every else ""
        if key.id in ("overview.acknowledge", "overview.snooze"):
            can = need is not None and (key.id == "overview.snooze" or need.newest is not None)
            return label if can and not self._is_engine_down else ""
        chosen = self._runs()
        several = len(chosen) > 1
        ungraded = need is not None and _is_of(need, CauseKind.UNGRADABLE)
        what = f"{label} {len(chosen):,}" if several else f"{label} {chosen[0].id}" if chosen else ""
        if key.id == "overview.relaunch":
            return what if not several and all(_may_relaunch(run) for run in chosen) else ""
        if key.id == "overview.relaunch_all":
            what = f"relaunch {len(chosen):,}"
            return what if several and all(_may_relaunch(run) for run in chosen) else ""
        if key.id == "overview.regrade":
            return what if ungraded else ""
        if key.id == "overview.log":
            return label if chosen else ""
        if key.id == "overview.runs":
            return label if need is not None and need.group is not None else ""
        return label

    def _opens(self, target: Target, need: Need | None) -> str:
        """Name what Enter opens."""
        if target.run_id is not None:
            return f"run {target.run_id}"
        if need is not None and need.group is not None:
            return "hide runs" if need.key in self._opened else "list runs"
        if target.place == _OLDER:
            return "hide" if self._with_older else "show"
        return {"engine": "start engine"}.get(target.place, target.place)

    def _begin(self, lines: LineList) -> None:
        """Put the cursor on the first thing that needs a person, if there is one and nobody has moved the cursor.

        Done again until the engine is known, since its problems come first and may be read after those of runs.
        """
        if self._began_on is not None and lines.key != self._began_on:
            self._has_begun = True
            return
        needed = {need.key for need in self._listed.needed}
        keys = (line.key for line in lines.lines if isinstance(line.key, Target))
        first = next((key for key in keys if key.cause in needed), None)
        if first is not None:
            lines.put_cursor(first)
        self._began_on = lines.key
        self._has_begun = self.app.is_host_known

    def action_open(self) -> None:
        """Open the line's subject; for a group, show its runs below it, or hide them again."""
        target, need = self._target(), self._need()
        if target is None:
            return
        if target.run_id is not None:
            self.app.show_run(target.run_id)
        elif need is not None and need.group is not None:
            self._opened ^= {need.key}
            self.redraw()
        elif target.place == "engine":
            self._ask_to_start_engine()
        elif target.place == _OLDER:
            self._with_older = not self._with_older
            self.redraw()
        elif target.place == "sweep":
            self.app.show_sweep(target.sweep_id)
        else:
            self.app.show(target.place)

    def action_next(self) -> None:
        """Put the cursor on the next need."""
        lines, target = self.query_one(LineList), self._target()
        first: dict[str, Target] = {}  # the line of each need, without the runs below opened groups
        for line in lines.lines:
            if isinstance(line.key, Target) and line.key.cause:
                first.setdefault(line.key.cause, line.key)
        known = list(first)
        if not known:
            self.app.say("nothing needs you" if self._found is not None else NOT_READ)
            return
        after = known.index(target.cause) + 1 if target is not None and target.cause in first else 0
        lines.put_cursor(first[known[after % len(known)]])

    def action_log(self) -> None:
        """Open the log of the line's run, or of the newest run of its group."""
        chosen = self._runs()
        if chosen:
            self.app.show_run(chosen[0].id, pane="log")

    def action_group_runs(self) -> None:
        """Show the sweep, filtered by the cause of the line's group."""
        need = self._need()
        if need is None or need.group is None:
            self.app.say(_NO_RUNS)
        elif need.group.key == recorded_cause(need.group.runs[0])[0]:
            self.app.filter_runs(f"cause:{need.group.key}", need.group.sweep_ids[0])
        else:
            # Whether runs are late or idle depends on the time, so they can't be filtered by it.
            self.app.filter_runs("", need.group.runs[0].sweep_id, need.group.runs[0].id)

    def action_timeline(self) -> None:
        """Show the timeline of the line's sweep, or of all sweeps if it has none."""
        target = self._target()
        self.app.show_timeline(None if target is None else target.sweep_id)

    def action_relaunch(self) -> None:
        """Relaunch the failed run of the line."""
        chosen = self._runs()
        if len(chosen) > 1:
            names = self.app.drawing.keys
            every, each = names("overview.relaunch_all"), names("overview.open")
            self.app.say(f"{every} relaunches all {len(chosen):,} runs, {each} lists them")
        elif chosen:
            self.app.act(run_actions.relaunch, chosen, limits=self._limits())
        else:
            self.app.say(_NO_RUNS)

    def action_relaunch_all(self) -> None:
        """Relaunch all runs of the group of the line."""
        need = self._need()
        if need is not None and need.group is not None:
            self.app.act(run_actions.relaunch, need.group.runs, limits=self._limits())
        else:
            self.app.say(_NO_RUNS)

    def _limits(self) -> dict[str, float]:
        """Return the time limit of each sweep."""
        found = () if self._found is None else self._found.sweeps
        return {line.sweep.id: line.sweep.conditions.time_limit_seconds for line in found}

    def action_regrade(self) -> None:
        """Retry the failed grading of the line's run, or of all runs of its group."""
        chosen = self._runs()
        if chosen:
            self.app.act(run_actions.regrade, chosen)

    def action_ask(self, what: str) -> None:
        """Open the prompt to acknowledge or snooze the line's need."""
        need = self._need()
        if need is None:
            self.app.say("put the cursor on something that needs you")
        elif what == "acknowledge" and need.newest is None:
            snooze = self.app.drawing.keys("overview.snooze")
            self.app.say(f"this can only be snoozed, by {snooze}: nothing says when it would be new")
        elif self._is_engine_down:  # said before the reason is typed
            self.app.say("the engine keeps acknowledgements, and it is not running")
        elif not self.app.refuses():
            self._asked_about = need
            label, _hint, _done = _REASONS[what]
            about = foreign(plain(need.text), self.size.width // 5, ellipsis=self.app.signs.ellipsis).rstrip()
            self.query_one(f"#{what}", Prompt).open(
                _SNOOZE if what == "snooze" else "", sign=label.format(about)
            )

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Acknowledge or snooze with the typed reason."""
        self.query_one(LineList).focus()
        need, text = self._asked_about, message.value.strip()
        if need is None:
            return
        seconds = None
        try:
            if message.prompt.id == "snooze":
                duration, _, text = text.partition(" ")
                seconds = read_duration(duration)
            action = need_actions.acknowledge(need.key, text, seconds=seconds, text=need.text)
        except Problem as problem:
            self.app.say(str(problem), bad=True)
            message.prompt.open(message.value)
        else:
            self.app.carry_out(action)

    def on_prompt_left(self) -> None:
        """Close the prompt without a change."""
        self.query_one(LineList).focus()

    @property
    def _is_engine_down(self) -> bool:
        return self.app.engine is not None and not self.app.engine.running

    def action_take_back(self) -> None:
        """Withdraw an acknowledgement."""
        need = self._need()
        if need is not None and need.acknowledgement is not None:
            self.app.act(need_actions.take_back, need.key)
        else:
            self.app.say("this is not acknowledged")

    def action_acknowledged(self) -> None:
        """Show or hide acknowledged needs."""
        self._with_acknowledged = not self._with_acknowledged
        self.redraw()

    def _ask_to_start_engine(self) -> None:
        """Ask for confirmation and start the engine: queued runs start with it."""
        from mlebench_console.console.screens.dialogs import ConfirmScreen

        if self.app.refuses() or self._found is None:
            return
        waiting = [line for line in self._found.sweeps if line.counts.queued]
        active = [line for line in waiting if line.sweep.state is SweepState.ACTIVE]
        queued = plural(sum(line.counts.queued for line in active or waiting), "queued run")
        starts = "No run is queued."
        if waiting:
            starts = f"{queued} may start then." if active else f"{queued} will not start: paused or stopped."
        lines: tuple[Pieces, ...] = (((starts, "text"),),)
        self.app.confirm(ConfirmScreen("Start the engine?", lines, "yes, start"), self.app.start_engine)

    def _take(self, found: Overview) -> None:
        if self._found is None:
            self.call_after_refresh(self.refresh_frame)  # from now on the list shows the problems
        self._found = found
        self.app.known_sweeps = tuple(line.sweep.id for line in found.sweeps)
        self.app.known_runs = self.app.known_runs or tuple(found.run_of.values())

    def _target(self) -> Target | None:
        key = self.query_one(LineList).key
        if isinstance(key, tuple):
            key = key[0]
        return key if isinstance(key, Target) else None

    def _need(self) -> Need | None:
        target = self._target()
        if target is None or not target.cause:
            return None
        return next((one for one in self._listed.every if one.key == target.cause), None)

    def _runs(self) -> tuple[Run, ...]:
        """The run of the line, or all of its group, the newest first."""
        target, need = self._target(), self._need()
        if target is None or self._found is None:
            return ()
        of_group = need.group.runs if need is not None and need.group is not None else ()
        if target.run_id is None:
            return of_group
        known = (*of_group, *self._found.run_of.values(), *self._found.needs.running)
        return tuple(run for run in known if run.id == target.run_id)[:1]


@dataclass(frozen=True)
class _Opened:
    """The keys of opened groups, and whether acknowledged needs and all ended sweeps are shown."""

    causes: frozenset[str]
    acknowledged: bool
    older: bool


# From this width on a sweep has one line, and a longer bar.
_WIDE, _OF_COSTS = 150, 40
# From this width on ended sweeps show how their runs ended.
_WITH_COUNTS = 110
# If a run's text begins with at least this many words of its group's text, they are left out.
_SAME_WORDS = 2
_BARS = {False: 16, True: 32}
# One ended sweep is shown for this many lines of the screen, so that needs remain visible.
_LINES_FOR_EACH_OVER = 7
# The least widths of sweep names, and of a note with its sign.
_SHORTEST_NAME, _SHORTEST_NOTE = 15, 12
# Running runs are listed from this height of the list on, one for this many of its lines: events have the rest.
_HEIGHT_FOR_RUNNING, _LINES_FOR_EACH_RUNNING = 34, 5
# The target of the line that shows or hides all other sweeps.
_OLDER = "older"
_DAY, _SOON = 86_400.0, 6 * 3600.0


@dataclass(frozen=True)
class _OverviewLines:
    """Draws the overview as lines: sweeps, needs, recent events."""

    found: Overview
    width: int
    drawing: Drawing
    engine: EngineStatus | None

    def lines(self, listed: Needs, opened: _Opened, height: int) -> list[Line]:
        """Return the lines of all parts: sweeps, needs, agents' own failures, recent events."""
        found, signs = self.found, self.drawing.signs
        lines = [Line(heading("sweeps", self.width, signs)), *self._sweeps(opened, height)]
        count = str(len(listed.needed)) if listed.needed else ""
        lines += [Line(), Line(heading("needs you", self.width, signs, note=count))]
        shown = (
            *listed.needed[:_MOST_GROUPS],
            *listed.own[:_MOST_GROUPS],
            *listed.acknowledged[:_MOST_GROUPS],
        )
        table = self._table_of(shown)
        lines += self._needs(listed.needed, opened, table)
        if not listed.needed:
            lines.append(Line(((f"  {signs.done} nothing", "good"),)))
        if listed.acknowledged and opened.acknowledged:
            lines += [_note("acknowledged:"), *self._needs(listed.acknowledged, opened, table)]
        elif listed.acknowledged:
            shows = f"{self.drawing.keys('overview.acknowledged')} shows them"
            lines.append(_note(f"{len(listed.acknowledged)} acknowledged: {shows}"))
        if listed.own:
            failed = sum(len(one.group.runs) for one in listed.own if one.group is not None)
            title = heading("agents' own failures", self.width, signs, note=plural(failed, "run"))
            lines += [Line(), Line(title), *self._needs(listed.own, opened, table)]
        # If there is little news, they have its room: around them are five other lines.
        usual = height // _LINES_FOR_EACH_RUNNING if height >= _HEIGHT_FOR_RUNNING else 0
        most = max(usual, height - len(lines) - len(found.events) - 5)
        if found.needs.running and most:
            note = f"{len(found.needs.running):,}"
            lines += [Line(), Line(heading("running, time limit at", self.width, signs, note=note))]
            lines += self._running(most)
        lines += [Line(), Line(heading("lately", self.width, signs))]
        # Only enough events to fill the screen, so that a new one changes a few lines but not the layout.
        return [*lines, *self._events(found.events[: max(8, height - len(lines))])]

    def _sweeps(self, opened: _Opened, height: int) -> list[Line]:
        """Return one line for each sweep, and in a narrow terminal a second one for each that is not over."""
        over = [sweep for sweep in self.found.sweeps if sweep.is_over]
        hidden = {sweep.sweep.id for sweep in over[max(2, height // _LINES_FOR_EACH_OVER) :]}
        # A single hidden sweep is shown: a line about it would take the same room.
        hidden = set() if opened.older or len(hidden) == 1 else hidden
        sweeps = [sweep for sweep in self.found.sweeps if sweep.sweep.id not in hidden]
        signs = self.drawing.signs
        with_costs = any(one.sweep.id in self.found.costs for one in sweeps)
        wide = self.width >= _WIDE + _OF_COSTS * with_costs
        with_notes = self.width >= _WITH_COUNTS and any(map(self._noted, sweeps))
        with_counts = self.width >= _WITH_COUNTS and (wide or any(sweep.is_over for sweep in sweeps))
        has_room = self.width >= _WITH_COUNTS and not (with_counts or with_notes or with_costs)
        bar = _BARS[wide or has_room]

        def two_lines(sweep: SweepStanding) -> bool:
            return not wide and not sweep.is_over

        def counts(sweep: SweepStanding) -> Forms | str:
            return "" if two_lines(sweep) else self._counts(sweep)

        names = [sweep.sweep.id for sweep in sweeps]

        def name(sweep: SweepStanding) -> Forms:
            is_noted = sweep.is_over and not with_notes and bool(self._noted(sweep))
            mark: Pieces = ((f" {signs.noted}", "accent"),) if is_noted else ()
            forms = told_apart(sweep.sweep.id, names, _SHORTEST_NAME, signs.ellipsis)
            return Forms([((text, "text"), *mark) for text in forms])

        columns: list[NounField[SweepStanding]] = [
            _column(name, _SHORTEST_NAME, grows=40),
            _column(lambda sweep: _bar_of(sweep, bar, signs), bar),
            _column(lambda sweep: f"{sweep.ended:>4}/{sweep.counts.total:<4}", 9, gap=1),
            _column(lambda sweep: self._medals(sweep, wide=wide), 12, grows=60 if wide else 34, gap=1),
            *([_column(counts, 12, grows=72, drop=1)] if with_counts else []),
            *([_column(self._noted, 4, grows=32, drop=3, role="accent")] if with_notes else []),
            *([_column(self._costs, 11, grows=52, drop=2)] if with_costs else []),
            _column(self._when, 19),
        ]
        table = Table(columns, sweeps, self.width, self.drawing)
        lines: list[Line] = []
        for sweep in sweeps:
            lines.append(table.line(sweep, key=Target("sweep", sweep.sweep.id)))
            if two_lines(sweep):
                lines.append(Line(self._second_line(sweep)))
        if len(over) > 2 and (hidden or opened.older):
            more = f"{len(hidden):,} more are over: {self.drawing.keys('overview.open')} shows them"
            less = f"{self.drawing.keys('overview.open')} hides those that have been over for long"
            text = more if hidden else less
            lines.append(replace(_note(text), key=Target(_OLDER), selectable=True))
        launch, demo = self.drawing.keys("app.launch"), "'mlebench-console demo' shows one on made-up data"
        return lines or [_note(f"no sweep yet: {launch} launches one, {demo}")]

    def _medals(self, sweep: SweepStanding, *, wide: bool) -> Forms:
        """Return its medals; short if a second line shows them in full."""
        forms = wording.medals(sweep.interim, sweep.any_medal, self.drawing.signs.plus_minus)
        has_second = not wide and not sweep.is_over
        demo: Pieces = (("demo ", "warn"),) if sweep.counts.demo else ()
        return Forms([(*demo, (text, "text")) for text in (forms[-1:] if has_second else forms)])

    def _counts(self, sweep: SweepStanding) -> Forms:
        """Return the number of runs by outcome or state, with the signs of the bar."""
        groups: list[Pieces] = []
        for kind, count in sweep.tally.items():
            sign, role = draw_kind(kind, self.drawing.signs)
            groups.append(((f"{sign}{count}", role),))
        between: Piece = (" ", "text")
        # All of them or none: a part could be mistaken for all.
        counts = joined(groups, between, 1000)
        # It may quote the problem of a dataset.
        wait = None if self._is_engine_down else sweep.wait(self.engine)
        waits = "" if wait is None else plain(f"wait: {wait.text}".replace("\n", " "), limit=80)
        return Forms([(*counts, (f" {waits}", "text")), counts, ()] if waits else [counts, ()])

    def _second_line(self, sweep: SweepStanding) -> Pieces:
        """Return the counts of its runs, and the bounds of the final medal rate: the first line has the medals."""
        forms = wording.medal_bounds(sweep.interim, sweep.any_medal, self.drawing.signs.plus_minus)
        room = self.width - 4
        *waiting, counts, _none = self._counts(sweep).forms
        # Why runs wait costs words of the bounds, but not the bounds.
        medals: list[Pieces] = [
            (*each, ("   ", "text"), (text, "dim")) for each in (*waiting, counts) for text in forms
        ]
        line = fitting(medals, room)
        noted: Piece = (foreign(self._noted(sweep), room).rstrip(), "accent")
        if self.width < _WITH_COUNTS and noted[0]:
            # The bounds stay, in a short form.
            forms_with_note = [(*form, ("   ", "text"), noted) for form in medals]
            bounds = medals[-1]
            if room - width_of(bounds) - 3 >= _SHORTEST_NOTE:
                short = cut(forms_with_note[-1], room, self.drawing.signs.ellipsis)
            else:
                # A few letters say less than the sign alone.
                short = fitting([(*bounds, (f"   {self.drawing.signs.noted}", "accent")), bounds], room)
            line = fitting([*forms_with_note[:-1], short], room)
        return (("    ", "text"), *line)

    def _noted(self, sweep: SweepStanding) -> str:
        """Return its tags and its note."""
        text = wording.annotation(sweep.sweep)
        return f"{self.drawing.signs.noted} {text}" if text else ""

    def _costs(self, sweep: SweepStanding) -> Forms | str:
        costs = self.found.costs.get(sweep.sweep.id)
        return "" if costs is None else Forms([((text, "dim"),) for text in cost_forms(costs)])

    @property
    def _is_engine_down(self) -> bool:
        return self.engine is not None and not self.engine.running

    def _when(self, sweep: SweepStanding) -> Pieces:
        if sweep.sweep.state is SweepState.PAUSED:
            return ((f"{self.drawing.signs.paused} paused", "warn"),)
        if sweep.ended == sweep.counts.total:
            return ((f"{self.drawing.signs.done} done", "good"),)
        if sweep.sweep.state is SweepState.STOPPED:
            return ((f"{self.drawing.signs.stopped} stopped", "dim"),)
        if self._is_engine_down:
            return (("engine is down", "warn"),)
        return ((wording.sweep_end(sweep.end(self.engine), self.drawing.now), "dim"),)

    def _table_of(self, shown: Sequence[Need]) -> Table[Need]:
        """Return the table of needs, with the same layout in all parts of the screen."""

        def role(need: Need) -> Role:
            if need.is_acknowledged(self.drawing.now):
                return "dim"
            return "bad" if need.is_bad else "warn"

        def sign(need: Need) -> Pieces:
            group = need.group
            if group is None:
                return ((self.drawing.signs.failed, role(need)),)
            if group.kind in _LIVE_LETTERS:
                return ((self.drawing.signs.running + _LIVE_LETTERS[group.kind], role(need)),)
            kind = group.runs[0].failure_class
            return (
                (
                    self.drawing.signs.failed + ("?" if kind is None else wording.FAILURE_LETTERS[kind]),
                    role(need),
                ),
            )

        def what(need: Need) -> Pieces | Rest:
            if need.group is None:
                return Rest(((self._parts(need)[0], role(need)),))
            return ((_text_of(need.group, self.drawing.now), role(need)),)

        def count(need: Need) -> str:
            number = 0 if need.group is None else len(need.group.runs)
            return f"{self.drawing.signs.times}{number:,}" if number > 1 else ""

        def sweep(need: Need) -> str:
            known = need.group.sweep_ids if need.group is not None else ()
            return f"{known[0]} +{len(known) - 1}" if len(known) > 1 else "".join(known)

        def which(need: Need) -> str:
            if need.group is None:
                return ""
            if len(need.group.runs) == 1:
                return f"{need.group.runs[0].competition_id} s{need.group.runs[0].seed}"
            splits = splits_of(need.group)
            return "all splits" if set(splits) >= set(ORDER[:3]) else "+".join(splits)

        def since(need: Need) -> Forms | str:
            if need.group is None:
                return ""
            forms = self._from_to(need.group.since, need.group.newest)
            return Forms([((form, "dim"),) for form in forms])

        def together(need: Need) -> Forms | Pieces | Rest:
            group = need.group
            if group is None:
                return what(need)
            text, name, sweep_name = _text_of(group, self.drawing.now), which(need), sweep(need)
            # The sweep is left out first, then the end of a name before its seed, then all of it.
            only = group.runs[0] if len(group.runs) == 1 else None
            begin, seed = (name, "") if only is None else (only.competition_id, f" s{only.seed}")
            widths = range(cell_len(begin) - 1, 9, -1)
            cuts = [fit(begin, cells, ellipsis=self.drawing.signs.ellipsis) + seed for cells in widths]
            behind = [f"  {name}  {sweep_name}", f"  {name}", *(f"  {each}" for each in cuts), ""]
            return Forms([((text, role(need)), (each, "dim")) for each in behind])

        def widest(cell: Callable[[Need], str]) -> int:
            return max((cell_len(cell(one)) for one in shown), default=0)

        def hint(need: Need) -> Forms:
            return _key_hint(need, self.drawing.keys)

        # Of an outage the last time says whether it goes on.
        times = max((natural(since(one)) for one in shown), default=6)
        last = [_column(since, times, gap=1, right=True), _column(hint, 8, grows=24, drop=1)]
        texts = widest(lambda one: _text_of(one.group, self.drawing.now) if one.group is not None else "")
        columns: list[NounField[Need]] = [
            _column(sign, 2),
            _column(what, max(1, texts)),
            _column(count, max(3, widest(count)), gap=1, right=True),
            _column(sweep, max(1, widest(sweep)), role="dim"),
            _column(which, max(1, widest(which)), role="dim"),
            *last,
        ]
        if sum(column.width + column.gap for column in columns) > self.width:
            # If columns would be cut beside blank space, each line uses its own widths.
            columns = [columns[0], _column(together, 20, grows=400), columns[2], last[0]]
            if self.width >= _HINTED_WIDTH:
                hints = max((natural(hint(one)) for one in shown), default=8)
                columns.append(replace(last[1], width=hints))
        return Table(columns, shown, self.width, self.drawing)

    def _from_to(self, first: float, last: float) -> tuple[str, ...]:
        """Return the time or times of something, longest form first: `22:10–22:44`, or how long ago it was."""
        ago = self.drawing.now - last
        if ago >= _DAY:
            return (f"{wording.age(ago)} ago",)
        begin, end = wording.clock(first), wording.clock(last)
        if begin == end and last - first < _DAY:
            return (end,)
        # A time of day alone would be mistaken for one of the last 24 hours.
        began = begin if self.drawing.now - first < _DAY else f"{wording.age(self.drawing.now - first)} ago"
        return f"{began}{self.drawing.signs.to}{end}", end

    def _needs(self, shown: Sequence[Need], opened: _Opened, table: Table[Need]) -> list[Line]:
        """Return one line for each need, below it its acknowledgement and, if it is opened, its runs."""
        lines: list[Line] = []
        for need in shown[:_MOST_GROUPS]:
            group = need.group
            only = group.runs[0] if group is not None and len(group.runs) == 1 else None
            if only is not None:
                target = Target("run", only.sweep_id, only.id, need.key)
            else:
                target = Target(_place_of(need), need.sweep_id, None, need.key)
            line = table.line(need, key=target)
            lines.append(line)
            if group is None:
                lines += [_note(f"    {part}") for part in self._parts(need)[1:]]
            if need.acknowledgement is not None:
                said = wording.acknowledged(need.acknowledgement)
                said = said if need.is_acknowledged(self.drawing.now) else f"is back; was {said}"
                lines.append(_note(f"    {foreign(said, max(8, self.width - 6)).rstrip()}"))
            if group is not None and only is None and need.key in opened.causes:
                whole = plain(_text_of(group, self.drawing.now).replace("\n", " "))
                if not any(whole in text for text, _role in line.pieces):
                    # The group's own line cuts the text.
                    lines += [_note(f"    {part}") for part in cells_of(whole, max(20, self.width - 8))]
                lines += self._runs_of(group, need.key)
        if len(shown) > _MOST_GROUPS:
            more = len(shown) - _MOST_GROUPS
            lines.append(_note(f"   and {more:,} more: 'mlebench-console runs causes' lists them"))
        return lines

    def _parts(self, need: Need) -> list[str]:
        """Return the text of a need without runs, wrapped to several lines."""
        return cells_of(plain(need.text.replace("\n", " ")), max(20, self.width - 8))

    def _runs_of(self, group: CauseGroup, key: str) -> list[Line]:
        """Return the runs of an opened group, with the texts that differ from the group's."""

        def why(run: Run) -> str:
            text = wording.grading_trouble(run, self.drawing.now) or run.failure_text
            own, known = text.split(" "), group.text.split(" ")
            same = list(
                takewhile(lambda place: own[place : place + 1] == known[place : place + 1], range(len(own)))
            )
            left = " ".join(own[len(same) :])
            return f"{self.drawing.signs.ellipsis} {left}" if left and len(same) >= _SAME_WORDS else left

        def ended(run: Run) -> str:
            at = run.ended_at if run.ended_at is not None else run.last_activity_at
            return "" if at is None else self._from_to(at, at)[0]

        columns: list[NounField[Run]] = [
            _column(lambda _run: "", 3),
            _column(lambda run: run.sweep_id, 8, grows=22, role="dim"),
            _column(lambda run: run.competition_id, 20, grows=56),
            _column(lambda run: f"s{run.seed}", 4),
            *([_column(why, 30, grows=REST, drop=1, role="dim")] if self.width >= _HINTED_WIDTH else []),
            _column(ended, 7, right=True, role="dim"),
        ]
        chosen = group.runs[:_MOST_OF_GROUP]
        table = Table(columns, chosen, self.width, self.drawing)
        lines = [table.line(run, key=Target("run", run.sweep_id, run.id, key)) for run in chosen]
        if len(group.runs) > len(chosen):
            lines.append(_note(f"     and {len(group.runs) - len(chosen):,} more"))
        return lines

    def _running(self, most: int) -> list[Line]:
        """Return the running runs, the one whose time is up first on top."""
        limits = self.found.needs.limits

        def time_up(run: Run) -> float:
            return (self.drawing.now if run.started_at is None else run.started_at) + limits[run.sweep_id]

        def until(run: Run) -> str:
            at = time_up(run)
            # The time of the end, not the time left: a line changes only when something has happened.
            is_soon = at - self.drawing.now < _SOON or wording.day(at) == wording.day(self.drawing.now)
            # The time alone of a limit of tomorrow could be read as one that is over.
            return wording.clock(at) if is_soon else wording.day_and_time(at)

        def standing(run: Run) -> Pieces:
            if (trouble := cause_now(run, limits[run.sweep_id], self.drawing.now)) is not None:
                return ((trouble[1], "warn"),)
            if run.standing is None:
                return (("nothing graded yet", "dim"),)
            score = "" if run.score is None else f" {wording.score(run.score, 9)}"
            words = f"now {wording.OUTCOME_WORDS[run.standing]}"
            return ((words, outcome_role(run.standing)), (score, "text"))

        columns: list[NounField[Run]] = [
            _column(until, 5, grows=11, role="dim"),
            _column(lambda run: run.sweep_id, 12, grows=16, drop=1, role="dim"),
            _column(lambda run: run.competition_id, 34, grows=56),
            _column(lambda run: f"s{run.seed}", 4, role="dim"),
            _column(standing, 28, gap=1, grows=60),
        ]
        shown = sorted(self.found.needs.running, key=lambda run: (time_up(run), run.id))[:most]
        table = Table(columns, shown, self.width, self.drawing)
        lines = [table.line(run, key=(Target("run", run.sweep_id, run.id), "running")) for run in shown]
        if more := len(self.found.needs.running) - len(shown):
            lines.append(_note(f"and {more:,} more: {self.drawing.keys('overview.timeline')} shows them"))
        return lines

    def _events(self, shown: Sequence[Happening]) -> list[Line]:
        def run_of(one: Happening) -> Run | None:
            return self.found.run_of.get(one.event.run_id or -1) if one.count == 1 else None

        def when(one: Happening) -> str | Forms:
            at = one.event.at
            if self.drawing.now - at < _DAY:
                return Forms([((text, "dim"),) for text in self._from_to(one.events[-1].at, at)])
            # Recent events need no year.
            return Forms([((text[5:], "dim"),) for text in (wording.date_and_time(at), wording.day(at))])

        def name(one: Happening) -> str:
            if one.count > 1:
                begin, end = wording.clock(one.events[-1].at), wording.clock(one.event.at)
                between = "" if ranges or begin == end else f" {begin}{self.drawing.signs.to}{end}"
                return plural(one.count, "run" if one.event.run_id is not None else "dataset") + between
            return one.event.competition_id or one.event.sweep_id or ""

        def sweep(one: Happening) -> str:
            # An event about a whole sweep shows its name only once.
            if one.count > 1:
                return sweeps_in_words(one.events)
            return one.event.sweep_id or "" if one.event.competition_id else ""

        def seed(one: Happening) -> str:
            run = run_of(one)
            return f"s{run.seed}" if run is not None else ""

        def text(one: Happening) -> Pieces:
            words = _event_text(one, self.drawing.signs)
            if one.count == 1:
                return (*words, *how(one.event, run_of(one)))
            known = [self.found.run_of.get(event.run_id or -1) for event in one.events]
            names = [f"{run.competition_id} s{run.seed}" for run in known if run is not None]
            names = names or [event.competition_id or "" for event in one.events]
            return (*words, (f"  {', '.join(names)}", "dim"))

        def how(event: Event, run: Run | None) -> Pieces:
            """Return of a run that has ended after how long, where there is room."""
            ends = event.kind in (EventKind.RUN_FINISHED, EventKind.RUN_FAILED, EventKind.RUN_STOPPED)
            if not ends or run is None or run.ended_at is None or event.at < run.ended_at:
                return ()  # the end of an earlier attempt
            took = "" if run.started_at is None else f"  after {wording.span(run.ended_at - run.started_at)}"
            return ((took if self.width >= _WIDE else "", "dim"),)

        def target(one: Happening) -> Target:
            event = one.event
            if one.count > 1:
                return Target("events")
            if run_of(one):
                return Target("run", event.sweep_id, event.run_id)
            return Target("sweep" if event.sweep_id else "data", event.sweep_id)

        ranges = self.width >= _HINTED_WIDTH
        # In a narrow terminal the beginning of a long name says enough, that of a result does not.
        what = _column(text, 28, gap=1, grows=300)
        if self.width >= _WITH_COUNTS:
            what = replace(what, width=40, grows=REST)
        columns: list[NounField[Happening]] = [
            _column(when, 5, grows=11 if ranges else 0, role="dim"),
            _column(sweep, 12, grows=16, drop=1, role="dim"),
            _column(name, 34, grows=56),
            _column(seed, 4, role="dim"),
            what,
        ]
        table = Table(columns, shown, self.width, self.drawing)
        return [table.line(one, key=(target(one), one.event.id)) for one in shown]


def _column(cell: Callable[[Row], Cell], width: int, **layout: Any) -> NounField[Row]:
    """Return a field of a list without titles."""
    return NounField("", lambda row, _drawing: cell(row), width, title="", **layout)


def _bar_of(sweep: SweepStanding, width: int, signs: Signs) -> Pieces:
    """Return the bar of a sweep's runs by outcome or state: for each the sign and its share of the bar."""
    pieces: list[Piece] = []
    for kind, cells in shared_out(sweep.tally, width).items():
        sign, role = draw_kind(kind, signs)
        filled = signs.bar_empty if kind is RunState.QUEUED else signs.bar_segment
        pieces.append((sign + filled * (cells - 1), role))
    return tuple(pieces)


def _text_of(group: CauseGroup, now: float) -> str:
    """Return what happened to a group, without a part in brackets that only says that something differs."""
    return group_text(group, now)


def _may_relaunch(run: Run) -> bool:
    return run.state in (RunState.FAILED, RunState.STOPPED)


def _is_of(need: Need, *kinds: CauseKind) -> bool:
    return need.group is not None and need.group.kind in kinds


# The screen that a need opens; `engine` starts the engine.
_PLACES = {
    NeedKind.ENGINE: "engine",
    NeedKind.PROVIDER: "events",
    NeedKind.JOB: "sweep",
    NeedKind.NO_ROOM: "sweep",
    NeedKind.KAGGLE: "data",
    NeedKind.DATASET: "data",
}


def _place_of(need: Need) -> str:
    if need.kind is NeedKind.SHARED_BUDGET:  # of a sweep, or of an experiment
        return "sweep" if need.sweep_id else "board"
    return _PLACES.get(need.kind, "host")


def _key_hint(need: Need, keys: Callable[[str], str]) -> Forms:
    """Return the hint of the key that resolves a need, if there is one; in words if there is room."""
    group = need.group
    forms = ["", ""]
    if _place_of(need) == "engine":
        forms = [f"{keys('overview.open')} start it", keys("overview.open")]
    elif group is not None and group.kind is CauseKind.UNGRADABLE:
        forms = [f"{keys('overview.regrade')} regrade", keys("overview.regrade")]
    elif group is not None and group.kind in (CauseKind.LATE, CauseKind.IDLE):
        forms = [f"{keys('overview.log')} log", keys("overview.log")]
    elif group is not None:
        several = len(group.runs) > 1
        key = keys("overview.relaunch_all" if several else "overview.relaunch")
        what = "relaunch all" if several else "relaunch"
        forms = [f"{key} {what} (free)", f"{key} (free)"] if group.is_free else [f"{key} {what}", key]
    return Forms([((form, "dim"),) for form in forms])


def _event_text(one: Happening, signs: Signs) -> Pieces:
    newest = one.listed[0]
    if newest.failure is not None:
        # As it stands among what needs a person, and with more room for the cause.
        return ((f"{signs.failed}{wording.FAILURE_LETTERS[newest.failure]} {one.text}", "bad"),)
    if newest.outcome is not None:
        words, figures = wording.outcome(newest.outcome), common_figures(one.listed)
        return ((words, outcome_role(newest.outcome)), (figures, "text"))
    return ((one.text, "bad" if one.event.severity is EventSeverity.ERROR else "text"),)


def _note(text: str) -> Line:
    return Line(((f"  {text}", "dim"),))
