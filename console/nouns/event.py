"""Events: what happened, with the seed of its run; steps of one end and equal events are one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField, RowFilter
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.roles import Drawing, Pieces, Role, Signs
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.foundation.text import plural
from mlebench_console.state import events, runs
from mlebench_console.state.causes import in_common
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import (
    STEPS,
    AgentEnded,
    AttemptRunning,
    AttemptStarting,
    DatasetChanged,
    Event,
    EventKind,
    EventSeverity,
    RunFailed,
    RunFinished,
    RunQueued,
    RunStopped,
    SubmissionGraded,
)
from mlebench_console.state.lifecycle import FailureClass, Outcome

# The number of events read at once.
_PAGE = 5000
# A submission that was graded longer before the end of its attempt is news of its own.
_GRADED_AT_THE_END_SECONDS = 120.0
# Equal events are one line if each is at most this many seconds older than the one after it; equal outcomes only if
# there are at least so many: of two, both names are worth their lines.
_OF_ONE_TIME = 3600.0
_DAY = 86_400.0
_FEWEST_EQUAL = 3
_ROLES: dict[EventSeverity, Role] = {
    EventSeverity.ERROR: "bad",
    EventSeverity.WARNING: "warn",
    EventSeverity.GOOD: "good",
    EventSeverity.NOTE: "dim",
}
_RESULTS = (EventKind.RUN_FINISHED, EventKind.SUBMISSION_GRADED, EventKind.DATASET_PREPARED)


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
    def outcome(self) -> Outcome | None:
        """The outcome that it reports; None if it reports none."""
        detail = self.event.detail
        return detail.outcome if isinstance(detail, RunFinished | SubmissionGraded) else None

    @property
    def failure(self) -> FailureClass | None:
        """The class of the failure that it reports; None if it reports none."""
        detail = self.event.detail
        return detail.failure_class if isinstance(detail, RunFailed) else None

    @property
    def words(self) -> str:
        """What happened, with scores of as many digits everywhere, and the standing before if it was another."""
        if self.outcome is not None:
            return f"{wording.outcome(self.outcome)}{self.figures}"
        return event_text(self.event)

    @property
    def figures(self) -> str:
        """The score of an outcome, and the standing before if it was another, after a space; empty without."""
        detail = self.event.detail
        if not isinstance(detail, RunFinished | SubmissionGraded):
            return ""
        score = "" if detail.score is None else f" {wording.score(detail.score)}"
        before = detail.before if isinstance(detail, SubmissionGraded) else None
        is_other = before is not None and before is not detail.outcome
        return f"{score} (was {wording.OUTCOME_SHORT[before]})" if before and is_other else score

    @property
    def brief(self) -> str:
        """What happened, of a failure without its class, where a sign shows that."""
        match self.event.detail:
            case RunFailed(failure_text=text, suspected=suspected):
                return ": ".join(filter(None, (f"suspected: {suspected.words}" if suspected else "", text)))
        return self.words

    @property
    def ended(self) -> str:
        """How the attempt ended whose result it reports; empty if as usual, or if that is an event of its own."""
        for step in self.steps:
            if isinstance(step.detail, AgentEnded):
                return "" if step.detail.is_usual else step.text
        return ""


# One event, or equal ones that follow each other, newest first.
EventRow = tuple[ListedEvent, ...]


def event_text(event: Event) -> str:
    """Write what happened, and how often where repetitions are counted."""
    return f"{event.text} ({event.times:,} times)" if event.times > 1 else event.text


def _needed_words(chosen: RowFilter[EventRow]) -> tuple[str, ...]:
    """Return the words that each event that passes has somewhere, for a query that leaves out most of the others.

    SQLite knows upper and lower case of ASCII alone.
    """
    return tuple(
        term.value
        for term in chosen.terms
        if term.field in ("", "kind", "sweep", "competition") and not term.is_negated and term.value.isascii()
    )


def _possible_kinds(chosen: RowFilter[EventRow]) -> frozenset[EventKind] | None:
    """Return the kinds of which events of the chosen severities may be, for the same query; None where all may be."""
    wanted = [term.value for term in chosen.terms if term.field == "severity" and not term.is_negated]
    # Kinds of another version are notes.
    if not wanted or any(EventSeverity.NOTE.startswith(each) for each in wanted):
        return None
    of_severity = {kind for kind in EventKind if kind.severity.startswith(tuple(wanted))}
    return frozenset({*of_severity, EventKind.RUN_FINISHED})


def accepted(chosen: RowFilter[EventRow], found: Iterable[ListedEvent]) -> list[ListedEvent]:
    """Return the events that pass a filter, which depends on neither signs nor the time."""
    drawing = Drawing(0.0)
    return [one for one in found if chosen.accepts((one,), drawing)]


def listed_events(
    database: Database, chosen: RowFilter[EventRow], *, limit: int, whole: bool = True
) -> tuple[ListedEvent, ...]:
    """Read the newest events that pass a filter, newest first; unless `whole`, with one for all steps of an end.

    Events are stored in the order of reporting, and runners may report much later: a whole page is read, and those that
    happened last are returned.
    """
    seeds = runs.seeds(database)
    found: list[ListedEvent] = []
    before = None
    while page := events.newest(
        database,
        limit=_PAGE,
        before_id=before,
        containing=_needed_words(chosen),
        kinds=_possible_kinds(chosen),
    ):
        listed = (
            ListedEvent(event, None if event.run_id is None else seeds.get(event.run_id)) for event in page
        )
        found += accepted(chosen, listed)
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
            ends |= {(event.attempt_id, kind): len(joined) for kind in STEPS.get(event.kind, ())}
        joined.append(one)
    return joined


def what_happened(event: Event) -> tuple[object, ...]:
    """Return what is the same in equal events: of one cause, one request or one outcome."""
    match event.detail:
        case RunFailed(cause=cause):
            return event.kind, cause
        case RunFinished(outcome=outcome):
            return event.kind, event.sweep_id, outcome
        case SubmissionGraded() | RunQueued() | RunStopped() | AttemptStarting() | AttemptRunning():
            return event.kind, event.sweep_id, event.detail
        case DatasetChanged() if event.kind == EventKind.DATASET_PREPARED:
            return event.kind, event.detail
    return (event.id,)


def common_figures(equal: Sequence[ListedEvent]) -> str:
    """Return the figures of equal outcomes, where they are the same too."""
    return equal[0].figures if len({one.event.detail for one in equal}) == 1 else ""


def common_words(equal: Sequence[ListedEvent], *, brief: bool = False) -> str:
    """Return what happened in equal events: of one all of its words, of several without what differs."""
    first = equal[0]
    if len(equal) == 1:
        return first.brief if brief else first.words
    if first.outcome is not None:
        return f"{wording.outcome(first.outcome)}{common_figures(equal)}"
    if text := in_common([(one.brief if brief else one.words, one.event.names) for one in equal]):
        return text
    # Texts of one problem may have nothing in common.
    match first.event.detail:
        case RunFailed(failure_class=of, problem=ProblemCode() as problem):
            return problem.words if brief else f"{of}: {problem.words}"
    return first.brief if brief else first.words


def folded(found: Iterable[ListedEvent]) -> list[EventRow]:
    """Group equal events of one day that follow each other; all are ordered newest first.

    Failures of one cause are grouped also if other events came between them, as in an outage.
    """
    groups: list[list[ListedEvent]] = []
    latest: dict[tuple[object, ...], list[ListedEvent]] = {}
    for one in found:
        event = one.event
        what = (*what_happened(event), wording.day(event.at))
        group = latest.get(what)
        follows = one.failure is not None or (bool(groups) and group is groups[-1])
        if group is None or not follows or group[-1].event.at - event.at > _OF_ONE_TIME:
            latest[what] = group = []
            groups.append(group)
        group.append(one)
    listed: list[EventRow] = []
    for group in groups:
        is_one_line = len(group) >= _FEWEST_EQUAL or group[0].event.kind not in _RESULTS
        listed += [tuple(group)] if is_one_line else [(one,) for one in group]
    return listed


def sweeps_in_words(found: Iterable[Event]) -> str:
    """Write the sweep of events, or of how many others some of them are: `aide-o3-all +1`."""
    known = list(dict.fromkeys(event.sweep_id for event in found if event.sweep_id))
    return f"{known[0]} +{len(known) - 1}" if len(known) > 1 else "".join(known)


def _belongs_to(event: Event, end: Event) -> bool:
    """Return whether an event is a step of an end: what was graded long before is news of its own."""
    if event.kind != EventKind.SUBMISSION_GRADED:
        return True
    return end.kind == EventKind.RUN_FINISHED and end.at - event.at <= _GRADED_AT_THE_END_SECONDS


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


def event_key(row: EventRow) -> int:
    """Return what identifies equal events while newer ones join them; of one event, its number."""
    return row[0].event.id if len(row) == 1 else -row[-1].event.id


def event_subject(row: EventRow) -> str:
    """Return the competition, or the number of equal events."""
    if len(row) == 1:
        return row[0].event.competition_id or ""
    members = {one.event.run_id for one in row}
    if None not in members:
        return plural(len(members), "run")
    return plural(len(row), "dataset" if row[0].event.kind == EventKind.DATASET_PREPARED else "event")


def event_sweeps(row: EventRow) -> str:
    """Write the sweeps of a row."""
    return sweeps_in_words(one.event for one in row)


def _time(row: EventRow, _drawing: Drawing) -> Cell:
    at = row[0].event.at
    return Forms((f"{wording.day(at)} {wording.clock_seconds(at)}", wording.clock_seconds(at)))


def _at(row: EventRow, drawing: Drawing) -> Cell:
    """Return the time of day, or of equal events their times; of what is older the day."""
    first, last = row[-1].event.at, row[0].event.at
    if drawing.now - last < _DAY:
        return Forms(wording.from_to(first, last, drawing.now, drawing.signs.to))
    # Recent events need no year.
    when = wording.day_and_time(last)
    return Forms((when, when[: len("03-16")]))


def _competition(row: EventRow, _drawing: Drawing) -> Cell:
    return ((event_subject(row), "dim" if row[0].event.is_routine else "text"),)


def _seed(row: EventRow, _drawing: Drawing) -> str:
    return "" if row[0].seed is None or len(row) > 1 else str(row[0].seed)


def _what(row: EventRow, _drawing: Drawing) -> str:
    return ", ".join(filter(None, (common_words(row), row[0].ended if len(row) == 1 else "")))


def _brief(row: EventRow, drawing: Drawing) -> Cell:
    """Return what happened, and where there is room how; the class of a failure is in its sign."""
    one, text, role = row[0], common_words(row, brief=True), event_role(row[0])
    ended = f" {drawing.signs.dot} {one.ended}" if one.ended and len(row) == 1 else ""
    return Forms([((text, role), (ended, "dim")), ((text, role),)])


def _searched(row: EventRow, _drawing: Drawing) -> str:
    event = row[0].event
    return f"{event.kind} {event.text} {event.sweep_id or ''} {event.competition_id or ''}"


def _of_kind(row: EventRow, value: str) -> bool:
    kind = row[0].event.kind
    return bool(value) and (kind.startswith(value) or kind.partition(".")[2].startswith(value))


def _document(row: EventRow, _now: float) -> dict[str, Any]:
    one = row[0]
    return asdict(one.event) | {"seed": one.seed, "severity": one.event.severity}


EVENT = Noun[EventRow](
    "event",
    key=event_key,
    document=_document,
    fields=(
        NounField("time", _time, 8, role="dim"),
        NounField("at", _at, 5, grows=11, role="dim"),
        NounField("sign", lambda row, drawing: event_sign(row[0], drawing.signs), 3, title="", gap=1),
        NounField("severity", lambda row, _: row[0].event.severity, 8, matches="beginning"),
        NounField("sweep", lambda row, _: event_sweeps(row), 12, grows=40, gap=1, role="dim", matches="part"),
        NounField("competition", _competition, 19, grows=56, gap=1, matches="part"),
        NounField("seed", _seed, 4, right=True, gap=1, role="dim", matches="whole"),
        # Below a heading that names none of its columns.
        NounField("which", lambda row, _: (seed := _seed(row, _)) and f"s{seed}", 3),
        NounField("run", lambda row, _: str(row[0].event.run_id or ""), 5, right=True, matches="whole"),
        NounField("kind", lambda row, _: row[0].event.kind, 17, drop=1, role="dim", matches=_of_kind),
        # What free words of a filter are searched in, as the state's query does.
        NounField("text", _searched, 24, words=True),
        NounField("what", _what, 24, grows=REST, title="what happened"),
        NounField("brief", _brief, 24, grows=110, title="what happened"),
    ),
)
