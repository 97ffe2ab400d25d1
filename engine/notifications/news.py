"""What of all that happens a person may want to be called for; it reads and sends nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from state.records import Event, Run

# So long without a line printed, a file handed in or a processor used, and somebody should look.
IDLE_SECONDS = 2 * 3600.0


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


def quiet_since(run: Run, now: float) -> float | None:
    """Since when a running run has given no sign of life, if that is too long."""
    active = run.last_activity_at or run.started_at or now
    return active if now - active > IDLE_SECONDS else None


def of_idle(run: Run) -> News:
    """A run that has been quiet for too long."""
    return News(Kind.IDLE, f"{run.sweep_id} {run.competition_id}, seed {run.seed}: no sign of life")


def in_short(found: Iterable[News]) -> str:
    """Many things in one line: the first in words, the others as a number."""
    texts = [each.text for each in found]
    return texts[0] + (f", and {len(texts) - 1} more" if len(texts) > 1 else "") if texts else ""
