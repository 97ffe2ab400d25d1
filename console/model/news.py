"""What has happened since one last looked that a person may want to be called for.

The settings name its kinds, so the first frame needs it; the state is imported when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.model.overview import Concern
    from state.database import Database
    from state.records import Event

_MOST = 200


class Kind(StrEnum):
    """What a notification can be about; these are the words of config.toml."""

    FINISHED = "finished"
    FAILED = "failed"
    MEDAL = "medal"
    IDLE = "idle"
    DISK = "disk"


@dataclass(frozen=True)
class News:
    """One thing to tell."""

    kind: Kind
    text: str


def newest_id(database: Database) -> int:
    """The number of the newest event."""
    from state import events

    found = events.newest(database, limit=1)
    return found[0].id if found else 0


def since(database: Database, after_id: int) -> tuple[Event, ...]:
    """The events after one, oldest first; of very many only the newest."""
    from state import events

    return tuple(reversed(events.newest(database, limit=_MOST, after_id=after_id)))


def of_events(found: Iterable[Event]) -> tuple[News, ...]:
    """What of these is news."""
    made = []
    for event in found:
        about = " ".join(part for part in (event.sweep_id, event.competition_id) if part)
        if event.kind == "run.failed":
            made.append(News(Kind.FAILED, f"{about}: {event.text}"))
        elif event.kind == "run.finished":
            medal = event.text.startswith(("gold", "silver", "bronze"))
            made.append(News(Kind.MEDAL if medal else Kind.FINISHED, f"{about}: {event.text}"))
    return tuple(made)


def of_idle(concerns: Iterable[Concern], told: Mapping[int, float]) -> dict[int, News]:
    """Runs that have been idle for too long and were not told of since their last sign of life."""
    return {
        each.run.id: News(Kind.IDLE, f"{each.run.sweep_id} {each.run.competition_id}: {each.why}")
        for each in concerns
        if each.kind == "idle" and told.get(each.run.id) != each.at
    }


def in_short(found: Iterable[News]) -> str:
    """Many things in one line: the first in words, the others as a number."""
    texts = [each.text for each in found]
    return texts[0] + (f", and {len(texts) - 1} more" if len(texts) > 1 else "") if texts else ""
