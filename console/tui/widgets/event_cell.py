"""The sign and the words of one event, as lists of events and a run's timeline show them."""

from __future__ import annotations

from mlebench_console.console import wording
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.roles import Pieces, Role, Signs
from mlebench_console.console.views.events import ListedEvent
from mlebench_console.state.event_records import EventKind, EventSeverity

_ROLES: dict[EventSeverity, Role] = {
    EventSeverity.ERROR: "bad",
    EventSeverity.WARNING: "warn",
    EventSeverity.GOOD: "good",
    EventSeverity.NOTE: "dim",
}


def event_sign(one: ListedEvent, signs: Signs) -> Pieces:
    """Return its sign as in the matrix of a sweep: a letter, in brackets while the run goes on."""
    if one.outcome is not None:
        letter, role = outcome_sign(one.outcome, signs), outcome_role(one.outcome)
        return ((f"[{letter}]" if one.event.kind == EventKind.SUBMISSION_GRADED else f" {letter}", role),)
    drawn = {
        EventSeverity.ERROR: signs.failed,
        EventSeverity.WARNING: "?",
        EventSeverity.GOOD: signs.done,
        EventSeverity.NOTE: signs.dot,
    }
    letter = drawn[one.event.severity]
    if one.failure is not None:
        letter += wording.FAILURE_LETTERS[one.failure]
    return ((f" {letter}", _ROLES[one.event.severity]),)


def event_role(one: ListedEvent) -> Role:
    """Return the role of its words: that of its outcome, or of its severity."""
    if one.outcome is not None:
        return outcome_role(one.outcome)
    if one.event.is_routine:
        return "dim"
    role = _ROLES[one.event.severity]
    return "text" if role == "dim" else role
