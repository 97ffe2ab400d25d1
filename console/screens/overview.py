"""The overview screen: is everything all right, and if not, where to go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual.widget import Widget

from console import wording
from console.actions import runs
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    cut,
    fitting,
    foreign,
    heading,
    joined,
    shared_out,
)
from console.tui.screen import ConsoleScreen, Queries
from console.tui.theme import Role, Signs
from console.tui.widgets.line_list import LineList
from console.tui.widgets.run_cell import draw_kind, draw_run, outcome_role
from console.tui.widgets.table import REST, Column, Forms, Table
from console.views.calls import cost_forms
from console.views.overview import Concern, Overview, SweepLine, concerns, overview
from engine.notifications.news import troubles
from state.budgets import BudgetScope
from state.lifecycle import FailureClass, Outcome, RunState, SweepState
from state.records import Event, Run


@dataclass(frozen=True)
class Target:
    """What a line leads to: a sweep, a run of it, the datasets, or the host."""

    place: str
    sweep_id: str | None = None
    run_id: int | None = None


class OverviewScreen(ConsoleScreen):
    """One list: sweeps, what needs a person, what happened lately."""

    CONTEXTS = ("overview", "list")
    MODE = "overview"

    def __init__(self) -> None:
        super().__init__()
        self._found: Overview | None = None

    def body(self) -> Iterable[Widget]:
        """The list."""
        yield LineList(id="all")

    def queries(self) -> Queries:
        """Everything at a glance."""
        config_file = self.app.places.config_file
        return {"overview": (lambda database: overview(database, config_file, self.app.now()), self._take)}

    def redraw(self) -> None:
        """Draw it as it is at this moment."""
        if self._found is None:
            return
        shown = self.query_one("#all", LineList)
        drawing = _Drawing(self._found, shown.line_width, self.app.now(), self.app.signs)
        shown.show(drawing.lines(troubles(self.app.engine), shown.size.height))

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

    def action_regrade(self) -> None:
        """Grade the run of the line again, whose grading has failed."""
        run = self._run()
        if run is not None:
            self.app.act(runs.regrade, [run])

    def _take(self, found: Overview) -> None:
        self._found = found
        self.app.known_sweeps = tuple(line.sweep.id for line in found.sweeps)

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
        known += self._found.run_of.values()
        return next((run for run in known if run.id == target.run_id), None)


# From this width on everything about a sweep is on one line, and the bar is longer.
_WIDE = 150
_BARS = {False: 16, True: 32}
_OUTCOMES = {outcome.value.replace("_", " "): outcome for outcome in Outcome}


@dataclass(frozen=True)
class _Drawing:
    """The overview as lines: sweeps, what needs a person, what happened lately."""

    found: Overview
    width: int
    now: float
    signs: Signs

    def lines(self, host_troubles: Sequence[str], height: int) -> list[Line]:
        """Return all three parts; what needs a person may take most of the height."""
        found, needed = self.found, concerns(self.found, self.now)
        count = len(needed) + len(host_troubles) + len(found.outages) + len(found.tight_budgets)
        lines = [Line(heading("sweeps", self.width, self.signs)), *self._sweeps()]
        note = str(count) if count else ""
        lines += [Line(), Line(heading("needs you", self.width, self.signs, note=note))]
        for text in host_troubles:
            lines.append(self._free_line((text, "bad"), Target("host", text)))
        for outage in found.outages:
            lines.append(
                self._free_line((wording.provider_outage(outage), "warn"), Target("events", outage.provider))
            )
        for standing in found.tight_budgets:
            text, budget = wording.shared_budget(standing), standing.budget
            place = Target("sweep", budget.name) if budget.scope is BudgetScope.SWEEP else Target("board")
            lines.append(self._free_line((text, "warn"), place))
        shown = needed[: max(4, height - len(lines) - 8)]
        lines += self._concerns(shown)
        if len(needed) > len(shown):
            more = len(needed) - len(shown)
            lines.append(_note(f"and {more} more: f on the sweep screen goes from one to the next"))
        for dataset in found.datasets_failed[:4]:
            text = f"data of {foreign(dataset.competition_id, 44).rstrip()}: {dataset.problem}"
            lines.append(self._free_line((text, "bad"), Target("data")))
        if not count and not found.datasets_failed:
            lines.append(Line(((f"  {self.signs.done} nothing", "good"),)))
        lines += [Line(), Line(heading("lately", self.width, self.signs))]
        # As many as fill the screen: with a list that never grows, news costs a few lines and no new layout.
        return [*lines, *self._events(found.events[: max(8, height - len(lines))])]

    def _free_line(self, piece: Piece, target: Target) -> Line:
        text, role = piece
        pieces: Pieces = ((f"  {self.signs.failed}   ", role), (foreign(text, max(4, self.width - 6)), role))
        return Line(cut(pieces, self.width), key=target, selectable=True)

    def _sweeps(self) -> list[Line]:
        """One line for each sweep, and in a narrow terminal a second one for each that is not over."""
        sweeps, signs = self.found.sweeps, self.signs
        wide = self.width >= _WIDE
        columns: list[Column[SweepLine]] = [
            Column("", lambda sweep: sweep.sweep.id, 15, grows=40),
            Column("", lambda sweep: _bar_of(sweep, _BARS[wide], signs), _BARS[wide]),
            Column("", lambda sweep: f"{sweep.ended:>4}/{sweep.counts.total:<4}", 9, gap=1),
            Column("", lambda sweep: self._medals(sweep, wide=wide), 13, grows=64 if wide else 34, gap=1),
            *([Column("", self._counts, 12, grows=44, drop=1)] if wide else []),
            *([Column("", self._costs, 11, grows=44, drop=2)] if any(one.costs for one in sweeps) else []),
            Column("", self._when, 18, grows=REST),
        ]
        table = Table(columns, sweeps, self.width, signs)
        lines: list[Line] = []
        for sweep in sweeps:
            lines.append(table.line(sweep, key=Target("sweep", sweep.sweep.id)))
            if not wide and not sweep.is_over:
                lines.append(Line(self._second_line(sweep)))
        return lines or [_note("no sweep yet")]

    def _medals(self, sweep: SweepLine, *, wide: bool) -> Forms:
        """What its runs have earned; what the second line says more fully is short here."""
        forms = wording.medals(sweep.interim, sweep.any_medal, self.signs.plus_minus)
        if sweep.counts.demo:
            return Forms([(("demo ", "warn"), (text, "text")) for text in forms])
        has_second = not wide and not sweep.is_over
        return Forms([((text, "text"),) for text in (forms[-1:] if has_second else forms)])

    def _counts(self, sweep: SweepLine) -> Forms:
        """How many runs stand how, by the signs of the bar."""
        groups: list[Pieces] = []
        for kind, count in sweep.tally.items():
            drawn = draw_kind(kind, self.signs)
            groups.append(((f"{drawn.sign}{count}", drawn.role),))
        between: Piece = (" ", "text")
        return Forms([joined(groups[:shown], between, 1000) for shown in range(len(groups), 0, -1)] or [()])

    def _second_line(self, sweep: SweepLine) -> Pieces:
        """How its runs stand, and between what the final figure lies."""
        forms = wording.medals(sweep.interim, sweep.any_medal, self.signs.plus_minus)
        counts = self._counts(sweep).forms[0]
        room = self.width - 4
        medals: list[Pieces] = [(*counts, ("   ", "text"), (text, "dim")) for text in forms]
        return (("    ", "text"), *fitting(medals, room))

    def _costs(self, sweep: SweepLine) -> Forms | str:
        return "" if sweep.costs is None else Forms([((text, "dim"),) for text in cost_forms(sweep.costs)])

    def _when(self, sweep: SweepLine) -> Pieces:
        if sweep.sweep.state is SweepState.PAUSED:
            return ((f"{self.signs.paused} paused", "warn"),)
        if sweep.ended == sweep.counts.total:
            return ((f"{self.signs.done} done", "good"),)
        if sweep.sweep.state is SweepState.STOPPED:
            return ((f"{self.signs.stopped} stopped", "dim"),)
        return ((wording.expected_end(sweep.ends, self.now), "dim"),)

    def _concerns(self, shown: Sequence[Concern]) -> list[Line]:
        def role(concern: Concern) -> Role:
            return "bad" if concern.kind == "failed" else "warn"

        def sign(concern: Concern) -> Pieces:
            if concern.kind != "failed":
                return ((f"{self.signs.failed}?", "warn"),)
            letter = wording.FAILURE_LETTERS[concern.run.failure_class or FailureClass.UNKNOWN]
            return ((f"{draw_run(concern.run, self.signs, self.now, 0.0).sign}{letter}", "bad"),)

        def why(concern: Concern) -> Pieces:
            text = concern.why
            if concern.kind == "late":
                text += f", {wording.span(max(0.0, concern.at - self.now))} left"
            elif concern.kind == "ungradable":
                text = wording.grading_trouble(concern.run, self.now)
            elif concern.kind == "idle":
                text += f" for {wording.span(self.now - concern.at)}"
            return ((text, role(concern)),)

        def key(concern: Concern) -> str:
            return {"failed": "r relaunch", "ungradable": "^g regrade"}.get(concern.kind, "l log")

        def age(concern: Concern) -> str:
            return wording.age(abs(self.now - concern.at)) if concern.kind == "failed" else ""

        columns: list[Column[Concern]] = [
            Column("", sign, 2),
            Column("", lambda concern: concern.run.sweep_id, 10, grows=16, role="dim"),
            Column("", lambda concern: concern.run.competition_id, 24, grows=56),
            Column("", lambda concern: f"s{concern.run.seed}", 4),
            Column("", why, 20, grows=REST),
            Column("", age, 5, right=True, gap=1, role="dim"),
            Column("", key, 10, drop=1, role="faint"),
        ]
        table = Table(columns, shown, self.width, self.signs)
        return [table.line(each, key=Target("run", each.run.sweep_id, each.run.id)) for each in shown]

    def _events(self, shown: Sequence[Event]) -> list[Line]:
        def run_of(event: Event) -> Run | None:
            return self.found.run_of.get(event.run_id or -1)

        def when(event: Event) -> str:
            today = self.now - event.at < 86400
            return wording.clock(event.at) if today else wording.date_and_time(event.at)

        def seed(event: Event) -> str:
            run = run_of(event)
            return f"s{run.seed}" if run is not None else ""

        def target(event: Event) -> Target:
            if run_of(event):
                return Target("run", event.sweep_id, event.run_id)
            return Target("sweep" if event.sweep_id else "data", event.sweep_id)

        columns: list[Column[Event]] = [
            Column("", when, 5, grows=16, role="dim"),
            Column("", lambda event: event.sweep_id or "", 12, grows=16, drop=1, role="dim"),
            Column("", lambda event: event.competition_id or event.sweep_id or "", 24, grows=56),
            Column("", seed, 4, role="dim"),
            Column("", lambda event: event.kind.partition(".")[2], 10, gap=1, role="dim"),
            Column("", _event_text, 20, gap=1, grows=REST),
        ]
        table = Table(columns, shown, self.width, self.signs)
        return [table.line(event, key=(target(event), event.id)) for event in shown]


def _bar_of(sweep: SweepLine, width: int, signs: Signs) -> Pieces:
    """Its runs by how they stand: of each kind the sign, then as much of the bar as it has of all runs."""
    pieces: list[Piece] = []
    for kind, cells in shared_out(sweep.tally, width).items():
        drawn = draw_kind(kind, signs)
        filled = signs.bar_empty if kind is RunState.QUEUED else signs.bar_segment
        pieces.append((drawn.sign + filled * (cells - 1), drawn.role))
    return tuple(pieces)


def _event_text(event: Event) -> Pieces:
    if event.kind.endswith("failed"):
        return ((event.text, "bad"),)
    earned = (outcome_role(each) for words, each in _OUTCOMES.items() if event.text.startswith(words))
    return ((event.text, next(earned, "text")),)


def _note(text: str) -> Line:
    return Line(((f"  {text}", "dim"),))
