"""One thing that needs a person, and those that show in the engine's status; `engine.needs.needs` has all of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mlebench_console.foundation.text import clock_time, date_and_time
from mlebench_console.state.causes import cause_key, normalised

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.engine.needs.causes import CauseGroup
    from mlebench_console.state.records import Acknowledgement

_DAY = 86_400.0


class NeedKind(StrEnum):
    """What needs a person; the key of a need begins with its kind, that of runs with the kind of their cause."""

    STATE = "state"
    ENGINE = "engine"
    DISK = "full_disk"
    RUNNER = "runner"
    HOST = "host"
    RUNS = "runs"
    PROVIDER = "provider"
    SHARED_BUDGET = "shared_budget"
    KAGGLE = "kaggle"
    JOB = "job"
    NO_ROOM = "no_room"
    DATASET = "dataset"


@dataclass(frozen=True)
class Need:
    """One thing that needs a person.

    Attributes:
        key: identifies it in all consoles and over time; acknowledgements refer to it.
        since: when it began; None if unknown.
        sweep_id: the one sweep that it is about; None for others.
        group: the runs concerned; None if it is not about runs.
        is_bad: whether something is already lost.
    """

    kind: NeedKind
    key: str
    text: str
    since: float | None = None
    sweep_id: str | None = None
    group: CauseGroup | None = None
    acknowledgement: Acknowledgement | None = None
    is_bad: bool = False

    @property
    def newest(self) -> float | None:
        """When something was last added to it; None if unknown, so that it can only be snoozed."""
        return self.since if self.group is None else self.group.newest

    @property
    def is_own(self) -> bool:
        """Whether it is about agents' own failures, which are results."""
        return self.group is not None and self.group.is_own

    def is_acknowledged(self, now: float) -> bool:
        """Return whether it is acknowledged or snoozed, and nothing has been added since."""
        known, newest = self.acknowledgement, self.newest
        if known is None or (newest is None and known.until is None):
            return False
        return known.hides(newest or 0.0, now)


def need_of(
    kind: NeedKind,
    about: str,
    text: str,
    since: float | None = None,
    *,
    sweep_id: str | None = None,
    is_bad: bool = False,
) -> Need:
    """Return a need that is not about runs, whose key is made of its kind and what it is about."""
    return Need(kind, cause_key(kind, about), text, since, sweep_id, is_bad=is_bad)


def is_about_runs(key: str) -> bool:
    """Return whether a need with this key would be about a group of runs with one cause."""
    return not key.startswith(tuple(f"{kind}-" for kind in NeedKind if kind is not NeedKind.RUNS))


def host_needs(
    engine: EngineStatus | None, now: float, *, has_state: bool = True, unread: str = ""
) -> tuple[Need, ...]:
    """Return the problems of the engine, its machine, and of reading the state.

    Args:
        engine: its last status; None if it could not be read.
        now: the time.
        has_state: whether there is a state, which needs an engine.
        unread: why the data shown may be outdated; empty if the state can be read.
    """
    found = [need_of(NeedKind.STATE, normalised(unread), unread, is_bad=True)] if unread else []
    if engine is None or not engine.running:
        if has_state:
            found.append(_of_engine_that_is_down(engine, now))
        return tuple(found)
    if engine.is_silent(now):
        text = "the engine gives no sign of life: what is shown may be outdated"
        found.append(need_of(NeedKind.ENGINE, "silent", text, engine.heartbeat_at, is_bad=True))
    found += disk_needs(engine)
    if engine.runner_alive is False:
        text = "no runner is alive: agents continue, but nothing starts and nothing is collected"
        found.append(need_of(NeedKind.RUNNER, "", text, is_bad=True))
    return (*found, *(need_of(NeedKind.HOST, normalised(text), text) for text in engine.problems))


def disk_needs(engine: EngineStatus) -> tuple[Need, ...]:
    """Return a need for each disk of the engine that is almost full."""
    return tuple(
        need_of(
            NeedKind.DISK,
            disk.holds,
            f"the disk with the {disk.holds} is {100 * (1 - disk.free / disk.total):.0f} % full",
            is_bad=True,
        )
        for disk in engine.disks
        if disk.is_low
    )


def _of_engine_that_is_down(engine: EngineStatus | None, now: float) -> Need:
    since = None if engine is None else engine.heartbeat_at
    seen = ""
    if since is not None:
        seen = f" (last sign of life {clock_time(since) if now - since < _DAY else date_and_time(since)})"
    text = f"the engine is not running{seen}: nothing starts, nothing is graded, agents go on"
    return need_of(NeedKind.ENGINE, "down", text, since, is_bad=True)
