"""The sign and the words of one event, as lists of events and a run's timeline show them."""

from __future__ import annotations

from mlebench_console.console import wording
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.roles import Pieces, Role, Signs
from mlebench_console.console.views.events import ListedEvent, Severity

_ROLES: dict[Severity, Role] = {
    Severity.ERROR: "bad",
    Severity.WARNING: "warn",
    Severity.GOOD: "good",
    Severity.NOTE: "dim",
}


def event_sign(one: ListedEvent, signs: Signs) -> Pieces:
    """Return its sign as in the matrix of a sweep: a letter, in brackets while the run goes on."""
    if one.outcome is not None:
        letter, role = outcome_sign(one.outcome, signs), outcome_role(one.outcome)
        return ((f"[{letter}]" if one.event.kind == "submission.graded" else f" {letter}", role),)
    drawn = {
        Severity.ERROR: signs.failed,
        Severity.WARNING: "?",
        Severity.GOOD: signs.done,
        Severity.NOTE: signs.dot,
    }
    letter = drawn[one.severity]
    if one.failure is not None:
        letter += wording.FAILURE_LETTERS[one.failure]
    return ((f" {letter}", _ROLES[one.severity]),)


def event_words(one: ListedEvent) -> Pieces:
    """Return what happened, in the colour of its outcome or severity."""
    role = "dim" if one.is_routine else _ROLES[one.severity]
    if one.outcome is not None:
        role = outcome_role(one.outcome)
    elif role == "dim" and not one.is_routine:
        role = "text"
    return ((one.words, role),)
