"""The timeline of a run: its attempts, and what happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, NounField
from mlebench_console.console.nouns.event import ListedEvent, event_role, event_sign, joined_steps
from mlebench_console.console.nouns.run import ATTEMPT, attempt_rows
from mlebench_console.console.roles import Drawing, Piece, Pieces
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.tui.widgets.blocks import Block, listing, wrapped
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.run import RunFacts
from mlebench_console.engine.needs.waits import WaitKind
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import RunState

if TYPE_CHECKING:
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.engine.control import EngineStatus


_EVIDENCE_LINES = 6


def _attempts(facts: RunFacts, drawing: Drawing) -> Iterable[Block]:
    """Draw the attempts, newest first, each with the evidence of how it ended."""
    rows = attempt_rows(facts.run, facts.attempts)
    table = Table(ATTEMPT.fields, rows, drawing)
    yield table.heading()
    for each in reversed(rows):
        attempt = each.attempt
        yield table.line(each, key=("attempt", ATTEMPT.key(each)))
        for row in attempt.evidence.splitlines()[:_EVIDENCE_LINES]:
            if row.strip() != attempt.failure_text.strip():
                yield (" " * 11, "text"), (row, "warn")
    if not facts.attempts:
        yield (("  never launched yet", "dim"),)


def happened(facts: RunFacts) -> Block:
    """Return the run's events, newest first, those with which an attempt begins or ends as one."""
    found = joined_steps(ListedEvent(event, facts.run.seed) for event in facts.events)
    return listing(_EVENTS, found, key=lambda one: ("event", one.event.id))


def _words(one: ListedEvent, drawing: Drawing) -> Pieces:
    ended = f" {drawing.signs.dot} {one.ended}" if one.ended else ""
    return ((f"{one.words}{ended}", event_role(one)),)


_EVENTS = (
    NounField[ListedEvent]("events", lambda one, _: wording.day_and_time(one.event.at), 11, role="dim"),
    NounField[ListedEvent]("sign", lambda one, drawing: event_sign(one, drawing.signs), 3, title="", gap=1),
    NounField[ListedEvent]("what", _words, 10, grows=REST, title="", gap=1, wraps=4),
)


def _stopped(facts: RunFacts) -> Iterator[Block]:
    """Yield when and by whom a run was stopped."""
    stops = (each for each in facts.events if each.kind == EventKind.RUN_STOPPED)
    if facts.run.state is RunState.STOPPED and (stop := next(stops, None)) is not None:
        yield ((f"  {stop.text}, {wording.day_and_time(stop.at)}", "text"),)


def waiting(facts: RunFacts, engine: EngineStatus | None, drawing: Drawing) -> Iterator[Block]:
    """Yield why a queued run does not start yet, what can be done about it, and when it may start."""
    queued = facts.queued
    if queued is None:
        return
    waits = queued.waits(engine)
    if not waits:
        yield (("  nothing: the engine starts it in a moment", "text"),)
    for place, wait in enumerate(waits):
        yield wrapped(wait.text, "warn" if wait.needs_person else "text", _label("" if place else "waits"))
        if step := _NEXT_STEPS.get(wait.kind):
            yield _label(""), (step, "dim")
    starts = queued.starts(engine)
    if starts is not None:
        what = (
            "if every run before it takes its whole time limit"
            if starts.at_most
            else "if runs take as long as those that have ended"
        )
        yield _label("start"), (wording.expected(starts, drawing.now), "text"), (f"  {what}", "dim")
    yield ()


def _label(text: str) -> Piece:
    return f"  {text:<8}", "dim"


# What a person can do about what keeps a run from starting.
_NEXT_STEPS = {
    WaitKind.ENGINE: ":engine start starts it",
    WaitKind.PAUSED: ":sweep resume resumes it",
    WaitKind.DATASET: "p on the Data screen prepares it",
    WaitKind.BUDGET: "'sweep budget' on the command line sets another",
}


class NoLogPane(Pane):
    """What is known of a run without a log: why it waits or was stopped, and its events."""

    name = "log"
    keys = ("log",)
    has_log_below = False

    def content(self, view: PaneView) -> Iterable[Block]:
        """Return why there is no log."""
        yield from waiting(view.facts, view.engine, view.drawing)
        yield from _stopped(view.facts)
        yield (("  no log: the run was never launched", "dim"),)
        if view.facts.events:
            yield ()
            yield happened(view.facts)


class TimelinePane(Pane):
    """Attempts and events."""

    name = "timeline"

    def content(self, view: PaneView) -> Iterable[Block]:
        """Return attempts and events."""
        return partial(_attempts, view.facts), (), happened(view.facts)

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
