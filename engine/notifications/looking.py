"""Looking at what is new since one last looked, the same for the engine and for an open console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engine.notifications import news
from engine.notifications.news import Kind, News
from state import events, runs
from state.database import Database
from state.lifecycle import RunState

_MOST_EVENTS = 500


@dataclass(frozen=True)
class Told:
    """What has been told: events up to one, runs that were quiet since a moment, troubles of the host."""

    event: int = 0
    idle: dict[str, float] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


def nothing_since_now(database: Database) -> Told:
    """Take everything that has happened so far for told."""
    newest = events.newest(database, limit=1)
    return Told(newest[0].id if newest else 0)


def look_at_events(database: Database, told: Told) -> tuple[list[News], Told]:
    """What has happened since; of very much only the newest."""
    happened = events.newest(database, limit=_MOST_EVENTS, after_id=told.event)
    found = list(news.of_events(reversed(happened)))
    return found, replace(told, event=happened[0].id) if happened else told


def look_at_idle(database: Database, told: Told, now: float) -> tuple[list[News], Told]:
    """Which runs have been quiet for too long, each once until it has moved."""
    quiet = {
        str(run.id): (since, run)
        for run in runs.of_all_sweeps(database)
        if run.state is RunState.RUNNING and (since := news.quiet_since(run, now)) is not None
    }
    found = [news.of_idle(run) for name, (since, run) in quiet.items() if told.idle.get(name) != since]
    return found, replace(told, idle={name: since for name, (since, _run) in quiet.items()})


def look_at_troubles(troubles: Sequence[str], told: Told) -> tuple[list[News], Told]:
    """What is newly wrong with the host."""
    found = [News(Kind.DISK, text) for text in troubles if text not in told.troubles]
    return found, replace(told, troubles=tuple(troubles))
