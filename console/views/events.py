"""Events with their severity and seed, and the filter of events that screen and command share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from console.views.lists import FilterTerm, parse_terms
from state import events, runs
from state.database import Database
from state.lifecycle import MEDALS, Outcome
from state.records import Event

FILTER_FIELDS = ("sweep", "kind", "sev", "comp", "seed", "run")
# The number of events read at once.
_PAGE = 5000


class Severity(StrEnum):
    """The severity of an event."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    NOTE = "note"


_SEVERITIES = {
    **dict.fromkeys(
        (
            *("run.failed", "grading.failed", "dataset.failed", "run.foreign", "samples.damaged"),
            *("provider.outage", "sweep.budget_used_up", "experiment.budget_used_up", "kaggle.unreachable"),
        ),
        Severity.BAD,
    ),
    **dict.fromkeys(
        (
            *("run.stopped", "run.provider", "run.deviated", "run.unsearched", "run.unmeasured"),
            *("run.unremoved", "run.code_not_kept", "run.budget", "run.budget_used_up", "run.service"),
            *("run.shared_budget_used_up", "submission.refused", "sweep.budget_warning"),
            *("experiment.budget_warning", "sweep.paused", "sweep.stopped", "sweep.remains"),
            *("dataset.refused", "dataset.unavailable", "dataset.leftover"),
        ),
        Severity.WARNING,
    ),
    **dict.fromkeys(
        ("grading.works", "provider.works", "kaggle.answers", "dataset.prepared", "dataset.verified"),
        Severity.GOOD,
    ),
}
_OUTCOMES = {outcome.value.replace("_", " "): outcome for outcome in Outcome}


@dataclass(frozen=True)
class ListedEvent:
    """One event.

    Attributes:
        seed: of its run; None if it has no run, or the run was removed.
    """

    event: Event
    seed: int | None

    @property
    def outcome(self) -> Outcome | None:
        """Return the outcome that it reports; None if it reports none."""
        if self.event.kind not in ("run.finished", "submission.graded"):
            return None
        return next((each for words, each in _OUTCOMES.items() if self.event.text.startswith(words)), None)

    @property
    def severity(self) -> Severity:
        """Return its severity, from its kind and outcome."""
        if self.event.kind == "run.finished":
            if self.outcome in (Outcome.INVALID, Outcome.NO_SUBMISSION):
                return Severity.WARNING
            return Severity.GOOD if self.outcome in MEDALS else Severity.NOTE
        return _SEVERITIES.get(self.event.kind, Severity.NOTE)


@dataclass(frozen=True)
class EventFilter:
    """A filter of events: `sweep:aide kind:run.failed sev:bad comp:leaf seed:2 run:17` and free words.

    Attributes:
        unknown: field names that don't exist; terms with them are ignored.
    """

    text: str = ""
    terms: tuple[FilterTerm, ...] = ()
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether it has any terms."""
        return bool(self.terms)

    def accepts(self, one: ListedEvent) -> bool:
        """Return whether an event passes: every term must match."""
        return all(_agrees(term, one) is not term.is_negated for term in self.terms)


def parse_event_filter(text: str) -> EventFilter:
    """Parse a filter of events as typed."""
    return EventFilter(text, *parse_terms(text, FILTER_FIELDS))


def listed_events(database: Database, chosen: EventFilter, *, limit: int) -> tuple[ListedEvent, ...]:
    """Read the newest events that pass a filter, newest first.

    The order of writing is not the order of happening: runners may report events much later.
    """
    found: list[ListedEvent] = []
    for one in _newest(database):
        if chosen.accepts(one):
            found.append(one)
        if len(found) >= limit:
            break
    return tuple(sorted(found, key=lambda one: (one.event.at, one.event.id), reverse=True))


def _newest(database: Database) -> Iterator[ListedEvent]:
    seeds = runs.seeds(database)
    before = None
    while page := events.newest(database, limit=_PAGE, before_id=before):
        for event in page:
            yield ListedEvent(event, None if event.run_id is None else seeds.get(event.run_id))
        if len(page) < _PAGE:
            return
        before = page[-1].id


def _agrees(term: FilterTerm, one: ListedEvent) -> bool:
    wanted, event = term.value, one.event
    if term.field == "":
        return (
            wanted in f"{event.kind} {event.text} {event.sweep_id or ''} {event.competition_id or ''}".lower()
        )
    if not wanted:
        return False
    if term.field in ("seed", "run"):
        return wanted == str(one.seed if term.field == "seed" else event.run_id)
    if term.field == "kind":
        return event.kind.startswith(wanted) or event.kind.partition(".")[2].startswith(wanted)
    if term.field == "sev":
        return one.severity.startswith(wanted)
    return wanted in ((event.sweep_id if term.field == "sweep" else event.competition_id) or "").lower()
