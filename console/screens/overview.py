"""The overview screen: is everything all right, and if not, where to go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from textual.widget import Widget

from console import wording
from console.actions import runs
from console.tui.painting import Line, Piece, Pieces, bar, cut, foreign, heading
from console.tui.screen import ConsoleScreen, Queries
from console.tui.theme import Role, Signs
from console.tui.widgets.line_list import LineList
from console.tui.widgets.run_cell import draw_run, outcome_role
from console.tui.widgets.table import REST, Column, Forms, Table
from console.views.calls import cost_forms
from console.views.overview import Concern, Overview, SweepLine, concerns, overview
from engine.notifications.news import troubles
from state.budgets import BudgetScope
from state.lifecycle import FailureClass, Outcome, SweepState
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
        return {"overview": (partial(overview, config_file=self.app.places.config_file), self._take)}

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
        signs = self.signs

        def ended(sweep: SweepLine) -> int:
            return sweep.counts.finished + sweep.counts.failed + sweep.counts.stopped

        def progress(sweep: SweepLine) -> Forms:
            counts = sweep.counts
            share = ended(sweep) / counts.total if counts.total else 0.0
            role: Role = "running" if counts.live else "good" if ended(sweep) == counts.total else "dim"
            drawn = [bar(share, width, signs) for width in (20, 10)]
            return Forms([((full, role), (empty, "faint")) for full, empty in drawn])

        def live(sweep: SweepLine) -> Pieces:
            return ((f"{signs.running} {sweep.counts.live}", "running" if sweep.counts.live else "dim"),)

        def failed(sweep: SweepLine) -> Pieces:
            return ((f"{signs.failed} {sweep.counts.failed}", "bad" if sweep.counts.failed else "dim"),)

        def any_medal(sweep: SweepLine) -> Pieces:
            return (
                ("any medal ", "dim"),
                (wording.mean_and_error(sweep.any_medal, signs.plus_minus), "text"),
            )

        def has_costs(sweep: SweepLine) -> bool:
            return sweep.costs is not None

        def costs(sweep: SweepLine) -> Forms | str:
            return (
                "" if sweep.costs is None else Forms([((text, "dim"),) for text in cost_forms(sweep.costs)])
            )

        columns: list[Column[SweepLine]] = [
            Column("", lambda sweep: sweep.sweep.id, 22, grows=40),
            Column("", progress, 10, grows=20),
            Column("", lambda sweep: f"{ended(sweep):>4}/{sweep.counts.total:<4}", 9, gap=1),
            Column("", live, 5, gap=1),
            Column("", lambda sweep: f"{signs.queued} {sweep.counts.queued}", 6, gap=1, role="dim"),
            Column("", failed, 5, gap=1),
            Column("", any_medal, 24, drop=1),
            *([Column("", costs, 11, grows=44, drop=2)] if any(map(has_costs, self.found.sweeps)) else []),
            Column("", lambda sweep: self._when(sweep, ended(sweep)), 13, grows=REST),
        ]
        table = Table(columns, self.found.sweeps, self.width, signs)
        lines = [table.line(sweep, key=Target("sweep", sweep.sweep.id)) for sweep in self.found.sweeps]
        return lines or [_note("no sweep yet")]

    def _when(self, sweep: SweepLine, ended: int) -> Pieces:
        if sweep.sweep.state is SweepState.PAUSED:
            return ((f"{self.signs.paused} paused", "warn"),)
        if ended == sweep.counts.total:
            return ((f"{self.signs.done} done", "good"),)
        if sweep.sweep.state is SweepState.STOPPED:
            return ((f"{self.signs.stopped} stopped", "dim"),)
        if sweep.seconds_left is None:
            return ()
        left = 60 * round(sweep.seconds_left / 60)
        text = f"ends ~{wording.clock(self.now + left)}" if left < 86400 else f"{wording.span(left)} left"
        return ((text, "dim"),)

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


def _event_text(event: Event) -> Pieces:
    if event.kind.endswith("failed"):
        return ((event.text, "bad"),)
    earned = (outcome_role(each) for words, each in _OUTCOMES.items() if event.text.startswith(words))
    return ((event.text, next(earned, "text")),)


def _note(text: str) -> Line:
    return Line(((f"  {text}", "dim"),))
