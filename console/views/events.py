"""Events with their severity and seed, and the filter of events that screen and command share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from mlebench_console.console import wording
from mlebench_console.console.lists import FilterTerm, parse_terms
from mlebench_console.state import events, runs
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import MEDALS, FailureClass, Outcome
from mlebench_console.state.records import Event

FILTER_FIELDS = ("sweep", "kind", "sev", "comp", "seed", "run")
# The number of events read at once.
_PAGE = 5000
# The events with which an attempt begins and ends, by the kind of the last one, which tells their result.
_STEPS = {"run.running": ("run.starting",)} | dict.fromkeys(
    ("run.finished", "run.failed", "run.stopped"), ("run.collecting", "run.grading", "submission.graded")
)
# A submission that was graded longer before the end of its attempt is news of its own.
_GRADED_AT_THE_END_SECONDS = 120.0
# What `transitions.agent_ended` writes of an agent that ended by itself and without an error: nobody has to read it.
_USUAL_END = "(exited, exit code 0)"
# Equal events are one line if each is at most this many seconds older than the one after it; equal outcomes only if
# there are at least so many: of two, both names are worth their lines.
OF_ONE_TIME = 3600.0
FEWEST_EQUAL = 3
RESULTS = ("run.finished", "submission.graded", "dataset.prepared")
_REQUESTS = ("run.queued", "run.stopped", "run.starting", "run.running")
# Kinds that tell how work goes on, not that something came of it.
_ROUTINE = frozenset(
    {
        *("run.queued", "run.starting", "run.running", "run.collecting", "run.grading"),
        *("run.staged", "dataset.requested", "dataset.working"),
    }
)


class Severity(StrEnum):
    """The severity of an event."""

    ERROR = "error"
    WARNING = "warning"
    GOOD = "good"
    NOTE = "note"


_SEVERITIES = {
    **dict.fromkeys(
        (
            *("run.failed", "grading.failed", "dataset.failed", "run.foreign", "samples.damaged"),
            *("provider.outage", "sweep.budget_used_up", "experiment.budget_used_up", "kaggle.unreachable"),
        ),
        Severity.ERROR,
    ),
    **dict.fromkeys(
        (
            *("run.stopped", "run.provider", "run.unsearched", "run.unmeasured"),
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
_SCORE = re.compile(r"-?\d[\d.]*(?:e[+-]?\d+)?")
_OUTCOMES = {outcome.value.replace("_", " "): outcome for outcome in Outcome}


@dataclass(frozen=True)
class ListedEvent:
    """One event, or the last of the events with which an attempt began or ended.

    Attributes:
        seed: of its run; None if it has no run, or the run was removed.
        steps: the events before it of the same beginning or end, newest first.
    """

    event: Event
    seed: int | None
    steps: tuple[Event, ...] = ()

    @property
    def is_routine(self) -> bool:
        """Whether it only tells how work goes on."""
        return self.event.kind in _ROUTINE

    @property
    def score(self) -> float | None:
        """The score that it reports, or that the last submission of its attempt has got; None without one."""
        graded = (one.text for one in (self.event, *self.steps) if one.kind == "submission.graded")
        found = _SCORE.search(next(graded, ""))
        return None if found is None else float(found[0])

    @property
    def words(self) -> str:
        """What happened, with scores of as many digits everywhere, and the standing before if it was another."""
        if self.outcome is None:
            # This text is its name and size alone.
            if self.event.kind == "sweep.created":
                return f"created: {self.event.text}"
            # A failure of unknown cause has no text behind its class.
            return self.event.text.removesuffix(": ")
        parts = [wording.outcome(self.outcome)]
        if self.score is not None:
            parts.append(wording.score(self.score))
        before = self.event.text.partition(" (was ")[2].removesuffix(")")
        if before and before != self.outcome.replace("_", " "):
            parts.append(f"(was {before})")
        return " ".join(parts)

    @property
    def ended(self) -> str:
        """How the attempt ended whose result it reports; empty if as usual, or if that is an event of its own."""
        found = next((step.text for step in self.steps if step.kind == "run.collecting"), "")
        return "" if found.endswith(_USUAL_END) else found

    @property
    def failure(self) -> FailureClass | None:
        """The class of the failure that it reports; None if it reports none."""
        word = self.event.text.partition(":")[0].partition(",")[0]
        is_failure = self.event.kind == "run.failed" and word in FailureClass._value2member_map_
        return FailureClass(word) if is_failure else None

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
    """A filter of events: `sweep:aide kind:run.failed sev:error comp:leaf seed:2 run:17` and free words.

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


def listed_events(
    database: Database, chosen: EventFilter, *, limit: int, whole: bool = True
) -> tuple[ListedEvent, ...]:
    """Read the newest events that pass a filter, newest first; unless `whole`, with one for all steps of an end.

    Events are stored in the order of reporting, and runners may report much later: a whole page is read, and those that
    happened last are returned.
    """
    seeds = runs.seeds(database)
    found: list[ListedEvent] = []
    before = None
    while page := events.newest(database, limit=_PAGE, before_id=before):
        listed = (
            ListedEvent(event, None if event.run_id is None else seeds.get(event.run_id)) for event in page
        )
        found += filter(chosen.accepts, listed)
        if len(page) < _PAGE or len(found if whole else joined_steps(found)) >= limit:
            break
        before = page[-1].id
    found.sort(key=lambda one: (one.event.at, one.event.id), reverse=True)
    return tuple((found if whole else joined_steps(found))[:limit])


def joined_steps(found: Iterable[ListedEvent]) -> list[ListedEvent]:
    """Join the events with which an attempt begins or ends to the last of them; all are ordered newest first."""
    joined: list[ListedEvent] = []
    # The last event of the latest beginning and end of each attempt, by its place in the list.
    ends: dict[tuple[int, str], int] = {}
    for one in found:
        event = one.event
        place = None if event.attempt_id is None else ends.get((event.attempt_id, event.kind))
        if place is not None and _belongs_to(event, joined[place].event):
            end = joined[place]
            joined[place] = replace(end, steps=(*end.steps, event))
            continue
        if event.attempt_id is not None:
            ends |= {(event.attempt_id, kind): len(joined) for kind in _STEPS.get(event.kind, ())}
        joined.append(one)
    return joined


def what_happened(event: Event) -> tuple[object, ...]:
    """Return what is the same in equal events: of one cause, one request or one outcome."""
    if event.kind == "run.failed" and "cause" in event.detail:
        return event.kind, event.detail["cause"]
    if event.kind in (*_REQUESTS, *RESULTS):
        return event.kind, event.sweep_id, event.text
    return (event.id,)


def folded(found: Iterable[ListedEvent]) -> list[tuple[ListedEvent, ...]]:
    """Group equal events of one day that follow each other; all are ordered newest first."""
    groups: list[list[ListedEvent]] = []
    for one in found:
        before = groups[-1][-1].event if groups else None
        if (
            before is not None
            and what_happened(before) == what_happened(one.event)
            and before.at - one.event.at <= OF_ONE_TIME
            and wording.day(before.at) == wording.day(one.event.at)
        ):
            groups[-1].append(one)
        else:
            groups.append([one])
    listed: list[tuple[ListedEvent, ...]] = []
    for group in groups:
        listed += [tuple(group)] if len(group) >= FEWEST_EQUAL else [(one,) for one in group]
    return listed


def sweeps_in_words(found: Iterable[Event]) -> str:
    """Write the sweep of events, or of how many others some of them are: `aide-o3-all +1`."""
    known = list(dict.fromkeys(event.sweep_id for event in found if event.sweep_id))
    return f"{known[0]} +{len(known) - 1}" if len(known) > 1 else "".join(known)


def _belongs_to(event: Event, end: Event) -> bool:
    """Return whether an event is a step of an end: what was graded long before is news of its own."""
    is_graded = event.kind == "submission.graded"
    return not is_graded or (end.kind == "run.finished" and end.at - event.at <= _GRADED_AT_THE_END_SECONDS)


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
