"""The timeline of a run: its attempts, and what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Forms, NounField
from mlebench_console.console.nouns.event import ListedEvent, event_role, event_sign, joined_steps
from mlebench_console.console.nouns.run import ATTEMPT, attempt_rows
from mlebench_console.console.pieces import Line, cut, foreign, foreign_lines
from mlebench_console.console.roles import Drawing, Pieces, Role
from mlebench_console.console.screens.run.header import MOST_WRAPPED
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.run import RunFacts
from mlebench_console.engine.needs.waits import WaitKind
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import RunState

if TYPE_CHECKING:
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.engine.control import EngineStatus


_EVIDENCE_LINES = 6


def _timeline(facts: RunFacts, width: int, drawing: Drawing) -> list[Line]:
    """List attempts with the evidence of how they ended, then events, newest first."""
    rows = attempt_rows(facts.run, facts.attempts)
    attempts = Table(ATTEMPT.fields, rows, width, drawing)
    lines = [attempts.heading()]
    for each in reversed(rows):
        attempt = each.attempt
        lines.append(attempts.line(each, key=("attempt", ATTEMPT.key(each))))
        for row in attempt.evidence.splitlines()[:_EVIDENCE_LINES]:
            if row.strip() == attempt.failure_text.strip():
                continue
            lines.append(Line(((" " * 11, "text"), (foreign(row, width - 13), "warn"))))
    if not facts.attempts:
        lines.append(Line((("  never launched yet", "dim"),)))
    return [*lines, Line(), *event_lines(facts, width, drawing)]


def event_lines(facts: RunFacts, width: int, drawing: Drawing) -> list[Line]:
    """List the run's events, newest first, those with which an attempt begins or ends as one."""
    found = joined_steps(ListedEvent(event, facts.run.seed) for event in facts.events)

    def parts(one: ListedEvent) -> list[str]:
        return foreign_lines(one.words, width - _BEFORE_EVENT, MOST_WRAPPED) or [""]

    def what(one: ListedEvent, _drawing: Drawing) -> Forms:
        words: Pieces = ((parts(one)[0], event_role(one)),)
        return Forms(
            [*([(*words, (f" {drawing.signs.dot} {one.ended}", "dim"))] if one.ended else []), words]
        )

    columns: list[NounField[ListedEvent]] = [
        NounField("events", lambda one, _: wording.day_and_time(one.event.at), 11, role="dim"),
        NounField("sign", lambda one, drawing: event_sign(one, drawing.signs), 3, title="", gap=1),
        NounField("what", what, 10, grows=REST, title="", gap=1),
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


def _stopped(facts: RunFacts) -> list[Line]:
    """Write when and by whom a run was stopped."""
    if facts.run.state is not RunState.STOPPED:
        return []
    stop = next((each for each in facts.events if each.kind == EventKind.RUN_STOPPED), None)
    if stop is None:
        return []
    return [Line(((f"  {foreign(stop.text, 60).rstrip()}, {wording.day_and_time(stop.at)}", "text"),))]


def wait_lines(facts: RunFacts, engine: EngineStatus | None, width: int, drawing: Drawing) -> list[Line]:
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
            for number, part in enumerate(foreign_lines(wait.text, width - _WAITS_LABEL - 3, MOST_WRAPPED)):
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


class NoLogPane(Pane):
    """What is known of a run without a log: why it waits or was stopped, and its events."""

    name = "log"
    keys = ("log",)
    has_log_below = False

    def lines(self, view: PaneView) -> list[Line]:
        """Draw why there is no log."""
        no_log = Line((("  no log: the run was never launched", "dim"),))
        events = [Line(), *event_lines(view.facts, view.width, view.drawing)] if view.facts.events else []
        return [
            *wait_lines(view.facts, view.engine, view.width, view.drawing),
            *_stopped(view.facts),
            no_log,
            *events,
        ]


class TimelinePane(Pane):
    """Attempts and events."""

    name = "timeline"

    def lines(self, view: PaneView) -> list[Line]:
        """Draw attempts and events."""
        return _timeline(view.facts, view.width, view.drawing)

    def can_compare(self, facts: RunFacts) -> bool:
        """Return whether there is an earlier attempt."""
        return len(facts.attempts) > 1

    def versions(self, facts: RunFacts, key: object) -> tuple[Wanted, Wanted] | str:
        """Return an attempt and the one before it."""
        from mlebench_console.console.views.code import Wanted

        if not isinstance(key, tuple) or key[0] != "attempt":
            return super().versions(facts, key)
        if key[1] == 1:
            return "there is no earlier attempt to compare with"
        return Wanted(facts.run.id, key[1] - 1), Wanted(facts.run.id, key[1])
