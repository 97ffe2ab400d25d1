"""What an operator may want to be notified of: found in the state and in the engine's status, sent by others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.settings import NotificationKind

if TYPE_CHECKING:
    from engine.control import EngineStatus
    from state.database import Database
    from state.records import Event

# The engine writes its status every other second; with this age it hangs.
SILENT_SECONDS = 20.0
# Below this share of a disk, a person has to look.
LOW_DISK_SHARE = 0.05
_MOST_EVENTS = 500
_OF_BUDGETS = frozenset(
    f"{scope}.budget_{what}" for scope in ("sweep", "experiment") for what in ("warning", "used_up")
)
_OF_DATASETS = {
    "dataset.failed": NotificationKind.FAILED,
    "dataset.prepared": NotificationKind.PREPARED,
    "dataset.refused": NotificationKind.REFUSED,
    "dataset.unavailable": NotificationKind.REFUSED,
}


@dataclass(frozen=True)
class News:
    """One thing to notify of."""

    kind: NotificationKind
    text: str


@dataclass(frozen=True)
class SeenNews:
    """What has been notified of: events up to one, runs that were idle since a moment, problems of the host."""

    event: int = 0
    idle: dict[str, float] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


def everything_until_now(database: Database) -> SeenNews:
    """Take everything that has happened so far as seen."""
    from state import events

    newest = events.newest(database, limit=1)
    return SeenNews(newest[0].id if newest else 0)


def new_events(database: Database, seen: SeenNews) -> tuple[list[News], SeenNews]:
    """Find what has happened since; of very much only the newest."""
    from state import events

    happened = events.newest(database, limit=_MOST_EVENTS, after_id=seen.event)
    found = list(of_events(reversed(happened)))
    return found, replace(seen, event=happened[0].id) if happened else seen


def new_idle_runs(database: Database, seen: SeenNews, now: float) -> tuple[list[News], SeenNews]:
    """Find runs that have been idle for too long, each once until it has moved."""
    from engine.runs.causes import idle_since
    from state import runs
    from state.lifecycle import RunState

    idle = {
        str(run.id): (since, run)
        for run in runs.of_all_sweeps(database)
        if run.state is RunState.RUNNING and (since := idle_since(run, now)) is not None
    }
    found = [
        News(NotificationKind.IDLE, f"{run.sweep_id} {run.competition_id}, seed {run.seed}: no sign of life")
        for name, (since, run) in idle.items()
        if seen.idle.get(name) != since
    ]
    return found, replace(seen, idle={name: since for name, (since, _run) in idle.items()})


def new_full_disks(disks: Sequence[str], seen: SeenNews) -> tuple[list[News], SeenNews]:
    """Find disks that have become full."""
    found = [News(NotificationKind.DISK, text) for text in disks if text not in seen.troubles]
    return found, replace(seen, troubles=tuple(disks))


def of_events(found: Iterable[Event]) -> tuple[News, ...]:
    """Select the events to notify of."""
    made = []
    for event in found:
        about = " ".join(part for part in (event.sweep_id, event.competition_id) if part)
        if event.kind in _OF_DATASETS:
            made.append(News(_OF_DATASETS[event.kind], f"{about}, {event.text}"))
        elif event.kind in ("run.failed", "grading.failed"):
            made.append(News(NotificationKind.FAILED, f"{about}: {event.text}"))
        elif event.kind in _OF_BUDGETS:
            made.append(News(NotificationKind.BUDGET, f"{about}: {event.text}" if about else event.text))
        elif event.kind in ("provider.outage", "provider.works"):
            made.append(News(NotificationKind.PROVIDER, event.text))
        elif event.kind == "run.finished":
            medal = event.text.startswith(("gold", "silver", "bronze"))
            kind = NotificationKind.MEDAL if medal else NotificationKind.FINISHED
            made.append(News(kind, f"{about}: {event.text}"))
    return tuple(made)


def in_short(found: Iterable[News]) -> str:
    """Write many things in one line: the first in words, the others as a number."""
    texts = [each.text for each in found]
    return texts[0] + (f", and {len(texts) - 1} more" if len(texts) > 1 else "") if texts else ""


def troubles(engine: EngineStatus | None) -> tuple[str, ...]:
    """What is wrong with the machine itself, in words."""
    if engine is None or not engine.running:
        return ()
    found = list(full_disks(engine))
    if engine.runner_alive is False:
        found.append("no runner is alive: agents go on, but nothing starts and nothing is collected")
    return tuple(found)


def full_disks(engine: EngineStatus) -> tuple[str, ...]:
    """Which disks are almost full, in words."""
    found = []
    for name, free, total in (
        ("state", engine.state_disk_free, engine.state_disk_total),
        ("datasets", engine.data_disk_free, engine.data_disk_total),
    ):
        if free is not None and total and free < LOW_DISK_SHARE * total:
            found.append(f"the disk with the {name} is {100 * (1 - free / total):.0f} % full")
    return tuple(dict.fromkeys(found))
