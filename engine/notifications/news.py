"""Find what an operator may want to be notified of, in the state and in the engine's status.

`engine.notifications.notifier` and consoles send it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mlebench_console.engine.settings import NotificationKind
from mlebench_console.foundation.text import plural

if TYPE_CHECKING:
    from mlebench_console.engine.needs.need import Need
    from mlebench_console.state.database import Database
    from mlebench_console.state.event_records import Event

_MOST_EVENTS = 500
# For this long after a notified failure, others of the same cause are only counted, and then reported together.
GROUPING_SECONDS = 600.0


@dataclass(frozen=True)
class News:
    """One thing to notify of."""

    kind: NotificationKind
    text: str


@dataclass(frozen=True)
class NotifiedCause:
    """A cause of failures that was notified, when, and how many more runs have failed of it since."""

    at: float
    text: str
    more: int = 0


@dataclass(frozen=True)
class SeenNews:
    """What has been notified.

    Attributes:
        event: the number of the last processed event.
        idle: runs that are idle, and since when.
        host: the keys of the problems of the host.
        causes: of failures, by their keys.
    """

    event: int = 0
    idle: dict[str, float] = field(default_factory=dict)
    host: tuple[str, ...] = ()
    causes: dict[str, NotifiedCause] = field(default_factory=dict)


def everything_until_now(database: Database) -> SeenNews:
    """Return everything that has happened so far as seen."""
    from mlebench_console.state import events

    newest = events.newest(database, limit=1)
    return SeenNews(newest[0].id if newest else 0)


def new_events(database: Database, seen: SeenNews, now: float) -> tuple[list[News], SeenNews]:
    """Find what has happened since, limited to the newest events.

    Failures of one cause are reported once, and later ones together: an outage that ends 200 runs must not send 200
    messages. Failures of a snoozed cause are not reported.
    """
    from mlebench_console.state import acknowledgements, events

    happened = events.newest(database, limit=_MOST_EVENTS, after_id=seen.event)[::-1]
    snoozed = {
        one.key
        for one in (acknowledgements.all_acknowledgements(database).values() if happened else ())
        if one.until is not None and one.hides(now, now)
    }
    causes = dict(seen.causes)
    fresh = []
    for event in happened:
        key = _cause_of(event)
        cause = causes.get(key)
        if cause is not None and now - cause.at < GROUPING_SECONDS:
            causes[key] = replace(cause, more=cause.more + 1)
        elif key not in snoozed:
            fresh.append(event)
    found = list(of_events(fresh))
    for event in fresh:
        if key := _cause_of(event):
            causes[key] = NotifiedCause(now, _in_common([event]))
    for key, cause in list(causes.items()):
        if now - cause.at < GROUPING_SECONDS:
            continue
        if cause.more:
            found.append(News(NotificationKind.FAILED, f"{plural(cause.more, 'more run')}: {cause.text}"))
            causes[key] = replace(cause, at=now, more=0)
        else:
            del causes[key]
    return found, replace(seen, event=happened[-1].id if happened else seen.event, causes=causes)


def new_idle_runs(database: Database, seen: SeenNews, now: float) -> tuple[list[News], SeenNews]:
    """Find runs that have been idle for too long, each once per idle period, all new ones in one message."""
    from mlebench_console.engine.needs.causes import idle_since
    from mlebench_console.state import runs
    from mlebench_console.state.lifecycle import RunState

    idle = {
        str(run.id): (since, run)
        for run in runs.live(database)
        if run.state is RunState.RUNNING and (since := idle_since(run, now)) is not None
    }
    new = [run for name, (since, run) in idle.items() if seen.idle.get(name) != since]
    found = []
    if new:
        sweep_ids = ", ".join(dict.fromkeys(run.sweep_id for run in new))
        which = f"{new[0].sweep_id} {new[0].competition_id}, seed {new[0].seed}"
        who = which if len(new) == 1 else f"{len(new):,} runs of {sweep_ids}"
        found.append(News(NotificationKind.IDLE, f"{who}: idle, without output, submission or processor use"))
    return found, replace(seen, idle={name: since for name, (since, _run) in idle.items()})


def new_of_host(found: Sequence[Need], seen: SeenNews) -> tuple[list[News], SeenNews]:
    """Find the problems of the host that are new, such as a disk that has become full."""
    new = [News(NotificationKind.DISK, need.text) for need in found if need.key not in seen.host]
    return new, replace(seen, host=tuple(need.key for need in found))


def of_events(found: Iterable[Event]) -> tuple[News, ...]:
    """Select the events to notify, with failures of one cause grouped."""
    made = []
    alike: dict[str, list[Event]] = {}
    events = list(found)
    for event in events:
        if key := _cause_of(event):
            alike.setdefault(key, []).append(event)
    for event in events:
        together = alike.get(_cause_of(event), [event])
        if len(together) > 1:
            if event is together[0]:
                whose = ", ".join(dict.fromkeys(one.sweep_id for one in together if one.sweep_id))
                text = f"{len(together):,} runs of {whose}: {_in_common(together)}"
                made.append(News(NotificationKind.FAILED, text))
            continue
        kind = _notified_as(event)
        if kind is not None:
            about = " ".join(part for part in (event.sweep_id, event.competition_id) if part)
            made.append(News(kind, f"{about}: {event.text}" if about else event.text))
    return tuple(made)


def _notified_as(event: Event) -> NotificationKind | None:
    """Return the kind of notification of an event; None where nobody is notified of such events."""
    from mlebench_console.state.event_records import EventKind, RunFinished
    from mlebench_console.state.lifecycle import MEDALS

    match event.kind:
        case EventKind.RUN_FAILED | EventKind.GRADING_FAILED | EventKind.DATASET_FAILED:
            return NotificationKind.FAILED
        case EventKind.RUN_FINISHED:
            is_medal = isinstance(event.detail, RunFinished) and event.detail.outcome in MEDALS
            return NotificationKind.MEDAL if is_medal else NotificationKind.FINISHED
        case EventKind.DATASET_PREPARED:
            return NotificationKind.PREPARED
        case EventKind.DATASET_REFUSED | EventKind.DATASET_UNAVAILABLE:
            return NotificationKind.REFUSED
        case EventKind.SWEEP_BUDGET_WARNING | EventKind.SWEEP_BUDGET_USED_UP:
            return NotificationKind.BUDGET
        case EventKind.EXPERIMENT_BUDGET_WARNING | EventKind.EXPERIMENT_BUDGET_USED_UP:
            return NotificationKind.BUDGET
        case EventKind.PROVIDER_OUTAGE | EventKind.PROVIDER_WORKS:
            return NotificationKind.PROVIDER
    return None


def _cause_of(event: Event) -> str:
    """Return the key of the cause of a failed run or failed grading; empty for other events."""
    from mlebench_console.state.event_records import GradingFailed, RunFailed

    return event.detail.cause if isinstance(event.detail, RunFailed | GradingFailed) else ""


def _in_common(events: Sequence[Event]) -> str:
    """Return what events of one cause have in common."""
    from mlebench_console.state.causes import in_common
    from mlebench_console.state.event_records import RunFailed

    if text := in_common([(event.text, event.names) for event in events]):
        return text
    failed = events[0].detail
    if isinstance(failed, RunFailed) and failed.problem is not None:
        return f"{failed.failure_class}: {failed.problem.words}"
    return events[0].text


def in_short(found: Iterable[News]) -> str:
    """Summarise news in one line: the text of the first and the number of the others."""
    texts = [each.text for each in found]
    return texts[0] + (f", and {len(texts) - 1} more" if len(texts) > 1 else "") if texts else ""
