"""The overview screen: the progress of sweeps, everything that needs a person, and recent events."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile

from textual.geometry import Size
from textual.widget import Widget

from mlebench_console.console.actions import need as need_actions
from mlebench_console.console.fields import REST, Forms
from mlebench_console.console.nouns.event import (
    EVENT,
    EventRow,
    common_words,
    event_role,
    event_subject,
    event_sweeps,
)
from mlebench_console.console.nouns.need import NEED, group_text
from mlebench_console.console.nouns.run import RUN, RunRow, run_rows
from mlebench_console.console.nouns.sweep import (
    BARS,
    BETWEEN_DETAILS,
    SWEEP,
    SweepRow,
    sweep_details,
    sweep_medals,
)
from mlebench_console.console.pieces import (
    Line,
    foreign,
    joined,
    told_apart,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.screen import NOT_READ, ConsoleScreen, Queries
from mlebench_console.console.tui.widgets.blocks import Block, laid_out, longest, section, wrapped
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.overview import Overview, overview
from mlebench_console.console.wording import acknowledged, annotation, grading_trouble, span
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.causes import CauseGroup, recorded_cause
from mlebench_console.engine.needs.need import Need, NeedKind
from mlebench_console.engine.needs.needs import Needs
from mlebench_console.engine.options.sweep import read_duration
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import plural
from mlebench_console.state.event_records import Event, EventKind
from mlebench_console.state.lifecycle import SweepState
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
            yield Prompt(sign, hint, partial(self._give_reason, name), id=name, done=done)

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
        lines = _OverviewLines(
            self._found,
            self._listed,
            self._opened,
            self._with_acknowledged,
            self._with_older,
            Size(shown.line_width, shown.size.height),
            self.app.drawing,
            self.app.engine,
        )
        shown.show(lines.lines())
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
        chosen, is_up = self._runs(), not self._is_engine_down
        several, can_relaunch = len(chosen) > 1, any(run.has_ended for run in chosen)
        what = f"{label} {len(chosen):,}" if several else f"{label} {chosen[0].id}" if chosen else ""
        # What each key would do, empty if nothing; others do what they always do.
        words = {
            "overview.open": self._opens(target, need),
            "overview.next": label if self._listed.every else "",
            "overview.acknowledge": label if is_up and need is not None and need.newest is not None else "",
            "overview.snooze": label if is_up and need is not None else "",
            "overview.relaunch": what if can_relaunch and not several else "",
            "overview.relaunch_all": f"relaunch {len(chosen):,}" if can_relaunch and several else "",
            "overview.regrade": what if any(run.grading_problem for run in chosen) else "",
            "overview.log": label if chosen else "",
            "overview.runs": label if need is not None and need.group is not None else "",
        }
        return words.get(key.id, label)

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
        from mlebench_console.console.screens.timeline import TimelineScreen

        target = self._target()
        self.app.push_screen(TimelineScreen(None if target is None else target.sweep_id))

    async def action_relaunch(self) -> None:
        """Relaunch the failed run of the line."""
        chosen = self._runs()
        if len(chosen) > 1:
            names = self.app.drawing.keys
            every, each = names("overview.relaunch_all"), names("overview.open")
            self.app.say(f"{every} relaunches all {len(chosen):,} runs, {each} lists them")
        else:
            await self.app.run_action("relaunch")

    def time_limits(self) -> dict[str, float]:
        """Return the time limit of each sweep."""
        found = () if self._found is None else self._found.sweeps
        return {line.sweep.id: line.sweep.conditions.time_limit_seconds for line in found}

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

    def _give_reason(self, what: str, typed: str) -> None:
        """Acknowledge or snooze with the typed reason."""
        need, text = self._asked_about, typed.strip()
        if need is None:
            return
        seconds = None
        try:
            if what == "snooze":
                duration, _, text = text.partition(" ")
                seconds = read_duration(duration)
            action = need_actions.acknowledge(need.key, text, seconds=seconds, text=need.text)
        except Problem as problem:
            self.app.say(str(problem), bad=True)
            self.query_one(f"#{what}", Prompt).open(typed)
        else:
            self.app.carry_out(action)

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


# From this width on bars are longer, and runs and what resolves needs have their columns.
_ROOMY = 100
# From this width on events about runs that have ended say after how long.
_WIDE = 150
# If a run's text begins with at least this many words of its group's text, they are left out.
_SAME_WORDS = 2
# One ended sweep is shown for this many lines of the screen, so that needs remain visible.
_LINES_FOR_EACH_OVER = 7
_SHORTEST_NAME = 15
# Running runs are listed from this height of the list on, one for this many of its lines: events have the rest.
_HEIGHT_FOR_RUNNING, _LINES_FOR_EACH_RUNNING = 34, 5
_MANY = 1000
# The target of the line that shows or hides all other sweeps.
_OLDER = "older"


@dataclass(frozen=True)
class _OverviewLines:
    """Draws the overview as lines: sweeps, needs, recent events.

    Attributes:
        opened: the keys of the needs whose runs are listed.
        with_acknowledged: whether acknowledged needs are listed.
        with_older: whether all ended sweeps are listed.
        size: that of the list.
    """

    found: Overview
    listed: Needs
    opened: frozenset[str]
    with_acknowledged: bool
    with_older: bool
    size: Size
    drawing: Drawing
    engine: EngineStatus | None

    def lines(self) -> list[Line]:
        """Return the lines of all parts: sweeps, needs, agents' own failures, running runs, recent events."""
        found, listed, height, keys = self.found, self.listed, self.size.height, self.drawing.keys
        needed = self._needs(listed.needed) or [((f"  {self.drawing.signs.done} nothing", "good"),)]
        if listed.acknowledged and self.with_acknowledged:
            needed += [_note("acknowledged:"), *self._needs(listed.acknowledged)]
        elif listed.acknowledged:
            shows = f"{keys('overview.acknowledged')} shows them"
            needed.append(_note(f"{len(listed.acknowledged)} acknowledged: {shows}"))
        lines = self._section("sweeps", self._sweeps())
        lines += self._section("needs you", needed, str(len(listed.needed) or ""))
        failed = sum(len(one.group.runs) for one in listed.own if one.group is not None)
        lines += self._section("agents' own failures", self._needs(listed.own), plural(failed, "run"))
        # If there is little news, they have its room: around them are four other lines.
        usual = height // _LINES_FOR_EACH_RUNNING if height >= _HEIGHT_FOR_RUNNING else 0
        running = self._running(max(usual, height - len(lines) - len(found.events) - 4))
        lines += self._section("running, time limit at", running, f"{len(found.needs.running):,}")
        # Only enough events to fill the screen, so that a new one changes a few lines but not the layout.
        lately = self._events(found.events[: max(8, height - len(lines) - 1)])
        return [*lines, *self._laid_out([section("lately"), *lately])]

    def _laid_out(self, content: Iterable[Block]) -> list[Line]:
        return laid_out(content, self.drawing.within(self.size.width))

    def _section(self, title: str, content: Sequence[Block], note: str = "") -> list[Line]:
        """Return the lines of a part below a heading, and an empty one; none for an empty part."""
        return self._laid_out([section(title, note), *content, Line()]) if content else []

    def _sweeps(self) -> list[Block]:
        """Return one line for each sweep, and a second one with its details for each that is not over."""
        found, keys = self.found, self.drawing.keys
        over = [sweep for sweep in found.sweeps if sweep.is_over]
        hidden = {one.sweep.id for one in over[max(2, self.size.height // _LINES_FOR_EACH_OVER) :]}
        # A single hidden sweep is shown: a line about it would take the same room.
        hidden = set() if self.with_older or len(hidden) == 1 else hidden
        rows = [
            SweepRow(one, self.engine, found.costs.get(one.sweep.id))
            for one in found.sweeps
            if one.sweep.id not in hidden
        ]
        names = [row.standing.sweep.id for row in rows]

        def name(row: SweepRow, drawing: Drawing) -> Forms:
            """Return its name, with a sign where it has tags or a note, and no room for them beside it."""
            mark: Pieces = ((f" {drawing.signs.noted}", "accent"),) if annotation(row.standing.sweep) else ()
            forms = told_apart(row.standing.sweep.id, names, _SHORTEST_NAME, drawing.signs.ellipsis)
            return Forms([((text, "text"), *mark) for text in forms])

        columns = SWEEP.columns(
            "sweep bar done earned details stands" if over else "sweep bar done stands",
            sweep={"cell": name, "width": _SHORTEST_NAME},
            bar={} if self.size.width >= _ROOMY else {"width": min(BARS)},
        )
        table = Table(columns, rows, self.drawing.within(self.size.width))
        lines: list[Block] = []
        for row in rows:
            lines.append(table.line(row, key=Target("sweep", row.standing.sweep.id)))
            if not row.standing.is_over:
                lines.append(self._details(row))
        if len(over) > 2 and (hidden or self.with_older):
            more = f"{len(hidden):,} more are over: {keys('overview.open')} shows them"
            less = f"{keys('overview.open')} hides those that have been over for long"
            lines.append(Line(_note(more if hidden else less), key=Target(_OLDER), selectable=True))
        demo = "'mlebench-console demo' shows one on made-up data"
        return lines or [_note(f"no sweep yet: {keys('app.launch')} launches one, {demo}")]

    def _details(self, row: SweepRow) -> Block:
        """Return the details of a sweep, and its medals with the bounds of their rate, of which words are left out."""
        counts, *others = sweep_details(row, self.drawing)
        return longest(
            *(
                (("    ", "text"), *joined((counts, medals, *others[:most]), BETWEEN_DETAILS, _MANY))
                for most in range(len(others), -1, -1)
                for medals in sweep_medals(row, self.drawing)[:-1] or [()]
            )
        )

    @cached_property
    def _need_table(self) -> Table[Need]:
        """The table of needs, with the same columns in all parts."""
        columns = "sign what runs times next" if self.size.width >= _ROOMY else "sign what runs times"
        every = (self.listed.needed, self.listed.own, self.listed.acknowledged)
        shown = [need for needs in every for need in needs[:_MOST_GROUPS]]
        return Table(NEED.columns(columns), shown, self.drawing.within(self.size.width))

    def _needs(self, shown: Sequence[Need]) -> list[Block]:
        """Return the lines of each need, below them its acknowledgement and, if it is opened, its runs."""
        lines: list[Block] = []
        for need in shown[:_MOST_GROUPS]:
            group = need.group
            only = group.runs[0] if group is not None and len(group.runs) == 1 else None
            if only is not None:
                target = Target("run", only.sweep_id, only.id, need.key)
            else:
                target = Target(_place_of(need), need.sweep_id, None, need.key)
            line, *below = self._need_table.lines(need, key=target)
            lines += [line, *below]
            if need.acknowledgement is not None:
                text = acknowledged(need.acknowledgement)
                text = text if need.is_acknowledged(self.drawing.now) else f"is back; was {text}"
                lines.append(_note(f"    {text}"))
            if group is not None and only is None and need.key in self.opened:
                whole = group_text(group, self.drawing.now)
                if not any(plain(whole) in text for text, _role in line.pieces):
                    # The group's own line cuts the text.
                    lines.append(wrapped(whole, "dim", ("      ", "text"), most=_MANY))
                lines += self._runs_of(group, need.key)
        if more := len(shown[_MOST_GROUPS:]):
            lines.append(_note(f"   and {more:,} more: 'mlebench-console runs causes' lists them"))
        return lines

    def _runs_of(self, group: CauseGroup, key: str) -> list[Block]:
        """Return the runs of an opened group, with the texts that differ from the group's."""
        known = group.text.split(" ")

        def why(row: RunRow, drawing: Drawing) -> str:
            own = (grading_trouble(row.run, drawing.now) or row.run.failure_text).split(" ")
            same = sum(
                1 for _pair in takewhile(lambda pair: pair[0] == pair[1], zip(own, known, strict=False))
            )
            left = " ".join(own[same:])
            return f"{drawing.signs.ellipsis} {left}" if left and same >= _SAME_WORDS else left

        columns = RUN.columns(
            "sign sweep competition which why ended"
            if self.size.width >= _ROOMY
            else "sign sweep competition which ended",
            sign={"width": 3, "right": True},
            sweep={"width": 8, "grows": 22},
            why={"cell": why, "role": "dim"},
        )
        rows = run_rows(group.runs[:_MOST_OF_GROUP], self.found.needs.limits)
        table = Table(columns, rows, self.drawing.within(self.size.width))
        lines: list[Block] = [
            table.line(row, key=Target("run", row.run.sweep_id, row.run.id, key)) for row in rows
        ]
        if more := len(group.runs) - len(rows):
            lines.append(_note(f"     and {more:,} more"))
        return lines

    def _running(self, most: int) -> list[Block]:
        """Return the running runs, the one whose time is up first on top; none without room."""
        rows = run_rows(self.found.needs.running, self.found.needs.limits)
        shown = sorted(rows, key=lambda row: (row.time_up(self.drawing.now), row.run.id))[: max(0, most)]
        columns = RUN.columns(
            "until sweep competition which stands",
            sweep={"grows": 16, "drop": 1},
            competition={"width": 34},
            which={"role": "dim"},
        )
        table = Table(columns, shown, self.drawing.within(self.size.width))
        lines: list[Block] = [
            table.line(row, key=(Target("run", row.run.sweep_id, row.run.id), "running")) for row in shown
        ]
        if shown and (more := len(rows) - len(shown)):
            lines.append(_note(f"and {more:,} more: {self.drawing.keys('overview.timeline')} shows them"))
        return lines

    def _events(self, shown: Sequence[EventRow]) -> list[Line]:
        """Return recent events, equal ones in one line."""

        def run_of(row: EventRow) -> Run | None:
            return self.found.run_of.get(row[0].event.run_id or -1) if len(row) == 1 else None

        def sweep(row: EventRow, _drawing: Drawing) -> str:
            # An event about a whole sweep shows its name only once.
            return event_sweeps(row) if len(row) > 1 or row[0].event.competition_id else ""

        def subject(row: EventRow, _drawing: Drawing) -> str:
            return event_subject(row) or row[0].event.sweep_id or ""

        def what(row: EventRow, _drawing: Drawing) -> Pieces:
            text: Piece = (common_words(row, brief=True), event_role(row[0]))
            return text, (names(row) if len(row) > 1 else took(row[0].event, run_of(row)), "dim")

        def names(row: EventRow) -> str:
            """Return the names of all that equal events are about, as far as there is room."""
            known = (f"{one.event.competition_id or ''} s{one.seed}" for one in row if one.seed is not None)
            return f"  {', '.join(known) or ', '.join(one.event.competition_id or '' for one in row)}"

        def took(event: Event, run: Run | None) -> str:
            """Return after how long a run has ended, where there is room."""
            ends = event.kind in (EventKind.RUN_FINISHED, EventKind.RUN_FAILED, EventKind.RUN_STOPPED)
            if not ends or run is None or run.started_at is None or run.ended_at is None:
                return ""
            is_earlier = event.at < run.ended_at or self.size.width < _WIDE
            return "" if is_earlier else f"  after {span(run.ended_at - run.started_at)}"

        def target(row: EventRow) -> Target:
            event = row[0].event
            if len(row) > 1:
                return Target("events")
            if run_of(row):
                return Target("run", event.sweep_id, event.run_id)
            return Target("sweep" if event.sweep_id else "data", event.sweep_id)

        is_roomy = self.size.width >= _ROOMY
        columns = EVENT.columns(
            "at sweep competition which sign brief",
            at={} if is_roomy else {"grows": 0},
            sweep={"cell": sweep, "grows": 16, "drop": 1, "gap": 2},
            competition={"cell": subject, "width": 34, "gap": 2},
            # In a narrow terminal the beginning of a long name says enough, that of a result does not.
            brief={"cell": what, "gap": 1, "grows": REST if is_roomy else 300},
        )
        table = Table(columns, shown, self.drawing.within(self.size.width))
        return [table.line(row, key=(target(row), row[0].event.id)) for row in shown]


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


def _note(text: str) -> Pieces:
    return ((f"  {text}", "dim"),)
