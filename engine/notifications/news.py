"""What of all that happens a person may want to be called for; it reads and sends nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundation.problems import UsageProblem

if TYPE_CHECKING:
    from engine.control import EngineStatus
    from state.database import Database
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


TABLE = "notifications"


@dataclass(frozen=True)
class Calls:
    """What an operator wants to be called for, and how.

    Attributes:
        urls: addresses as apprise knows them (webhooks, Slack, mail); they may hold secrets, so no repr shows them.
    """

    on: frozenset[Kind] = frozenset({Kind.FAILED, Kind.IDLE, Kind.DISK})
    bell: bool = False
    desktop: bool = False
    urls: tuple[str, ...] = field(default=(), repr=False)

    @property
    def rings_here(self) -> bool:
        """Whether the terminal of an open console is to call."""
        return self.bell or self.desktop


def read_calls(config_file: Path) -> Calls:
    """Read the table.

    Raises:
        UsageProblem: the file or its table can't be understood.
    """
    try:
        values = tomllib.loads(config_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Calls()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{config_file} can't be read", str(error), "Mend or remove it.") from error
    return calls_of(values.get(TABLE, {}), config_file)


def calls_of(table: Any, config_file: Path) -> Calls:
    """Understand the table; `config_file` is what a problem names.

    Raises:
        UsageProblem: it can't be understood.
    """
    if not isinstance(table, dict):
        raise UsageProblem(f"{config_file} can't be used", f"'{TABLE}' must be a table, [{TABLE}]")
    try:
        on = frozenset(Kind(name) for name in table.get("on", Calls().on))
    except (TypeError, ValueError) as error:
        known = ", ".join(Kind)
        raise UsageProblem(f"{config_file}: [{TABLE}] on", str(error), f"Known are: {known}.") from error
    urls = table.get("urls", [])
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise UsageProblem(f"{config_file}: [{TABLE}] urls must be a list of addresses")
    return Calls(on, bool(table.get("bell", False)), bool(table.get("desktop", False)), tuple(urls))


_MOST_EVENTS = 500


@dataclass(frozen=True)
class Told:
    """What has been told: events up to one, runs that were quiet since a moment, troubles of the host."""

    event: int = 0
    idle: dict[str, float] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


def nothing_since_now(database: Database) -> Told:
    """Take everything that has happened so far for told."""
    from state import events

    newest = events.newest(database, limit=1)
    return Told(newest[0].id if newest else 0)


def look_at_events(database: Database, told: Told) -> tuple[list[News], Told]:
    """What has happened since; of very much only the newest."""
    from state import events

    happened = events.newest(database, limit=_MOST_EVENTS, after_id=told.event)
    found = list(of_events(reversed(happened)))
    return found, replace(told, event=happened[0].id) if happened else told


def look_at_idle(database: Database, told: Told, now: float) -> tuple[list[News], Told]:
    """Which runs have been quiet for too long, each once until it has moved."""
    from state import runs
    from state.lifecycle import RunState

    quiet = {
        str(run.id): (since, run)
        for run in runs.of_all_sweeps(database)
        if run.state is RunState.RUNNING and (since := quiet_since(run, now)) is not None
    }
    found = [of_idle(run) for name, (since, run) in quiet.items() if told.idle.get(name) != since]
    return found, replace(told, idle={name: since for name, (since, _run) in quiet.items()})


def look_at_troubles(troubles: Sequence[str], told: Told) -> tuple[list[News], Told]:
    """What is newly wrong with the host."""
    found = [News(Kind.DISK, text) for text in troubles if text not in told.troubles]
    return found, replace(told, troubles=tuple(troubles))


# Below this share of a disk, a person has to look.
LOW_DISK_SHARE = 0.05


def troubles(engine: EngineStatus | None) -> tuple[str, ...]:
    """What is wrong with the machine itself, in words."""
    if engine is None or not engine.running:
        return ()
    found = list(full_disks(engine))
    if engine.runner_alive is False:
        found.append("no runner is alive: agents go on, but nothing starts and nothing is collected")
    return tuple(found)


def full_disks(engine: EngineStatus) -> tuple[str, ...]:
    """Which disks are all but full, in words."""
    found = []
    for name, free, total in (
        ("state", engine.state_disk_free, engine.state_disk_total),
        ("datasets", engine.data_disk_free, engine.data_disk_total),
    ):
        if free is not None and total and free < LOW_DISK_SHARE * total:
            found.append(f"the disk with the {name} is {100 * (1 - free / total):.0f} % full")
    return tuple(dict.fromkeys(found))
