"""The engine's status: a small file that it replaces every two seconds, and its lock."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mlebench_console.engine.places import Places
from mlebench_console.foundation import files, locks
from mlebench_console.foundation.problems import StateProblem

# The engine writes its status every two seconds; an engine with an older status hangs.
SILENT_SECONDS = 20.0
# A disk with less free space than this share is reported as full.
LOW_DISK_SHARE = 0.05


@dataclass(frozen=True)
class GpuUse:
    """A GPU of the engine's host, as last read; unknown values are None.

    Attributes:
        number: its number in the name of its file in /dev.
        attempts: those that hold it, or share it.
        is_lost: whether attempts hold it and the driver no longer lists it.
    """

    number: int | None
    name: str
    busy_percent: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    attempts: tuple[int, ...] = ()
    is_lost: bool = False


@dataclass(frozen=True)
class Disk:
    """A disk of the engine's host, by what it holds: the state, or the datasets."""

    holds: str
    free: int
    total: int

    @property
    def is_low(self) -> bool:
        """Whether it is almost full."""
        return self.free < LOW_DISK_SHARE * self.total


@dataclass(frozen=True)
class EngineStatus:
    """The status of the engine and its host; unknown values are None.

    If `running` is false, the other values are the last ones that an engine wrote.

    Attributes:
        live: how many runs are live.
        disk_for_runs: what live runs may not still take of their disk; None while no run that waits has such a limit.
        waiting: how many of these wait in the queue of a batch system.
        problem: all current problems in one line; empty without any.
        problems: the same as a list.
    """

    running: bool = False
    pid: int | None = None
    host: str = ""
    version: str = ""
    data_dir: str = ""
    started_at: float | None = None
    heartbeat_at: float | None = None
    live: int = 0
    waiting: int = 0
    queued: int = 0
    retrying: int = 0
    datasets_working: int = 0
    download_rate: float | None = None
    grading: int = 0
    runner_alive: bool | None = None
    slots: float | None = None
    slots_used: float | None = None
    memory_for_runs: int | None = None
    disk_for_runs: int | None = None
    load1: float | None = None
    cpus: int | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    state_disk_free: int | None = None
    state_disk_total: int | None = None
    data_disk_free: int | None = None
    data_disk_total: int | None = None
    gpus: int | None = None
    gpu_uses: tuple[GpuUse, ...] = ()
    isolation: str = ""
    problem: str = ""
    problems: tuple[str, ...] = ()

    @property
    def disks(self) -> tuple[Disk, ...]:
        """The disks of the state and of the datasets, as far as they are known."""
        known = (
            ("state", self.state_disk_free, self.state_disk_total),
            ("datasets", self.data_disk_free, self.data_disk_total),
        )
        return tuple(Disk(holds, free, total) for holds, free, total in known if free is not None and total)

    def variables(self) -> dict[str, str]:
        """Read the variables that a running engine was started with; empty where they can't be read."""
        try:
            pairs = Path(f"/proc/{self.pid}/environ").read_bytes().split(b"\0") if self.running else ()
        except OSError:  # it has ended since, or belongs to another user
            return {}
        return dict(os.fsdecode(pair).partition("=")[::2] for pair in pairs if b"=" in pair)

    def is_silent(self, now: float) -> bool:
        """Return whether a running engine has not written its status for so long that it must hang."""
        return self.heartbeat_at is not None and now - self.heartbeat_at > SILENT_SECONDS


def lock_path(places: Places) -> Path:
    """Return the file that a running engine has locked."""
    return places.state_dir / locks.ENGINE_LOCK


def owner_path(places: Places) -> Path:
    """Return the file that a command has locked while it uses a temporary state; other states have none."""
    return places.state_dir / "owner.lock"


def status_path(places: Places) -> Path:
    """Return the engine's status file."""
    return places.state_dir / locks.ENGINE_STATUS


def status(places: Places) -> EngineStatus:
    """Read the engine's status, with one file read and one test of a lock."""
    import msgspec  # imported here, because the console's first frame does not need it

    running = locks.is_held(lock_path(places))
    try:
        found = msgspec.json.decode(status_path(places).read_bytes(), type=EngineStatus)
    except FileNotFoundError:
        return EngineStatus(running=running)
    except (OSError, msgspec.MsgspecError) as error:
        raise StateProblem(
            f"{status_path(places)} can't be read", str(error), "Remove it; a running engine writes it again."
        ) from error
    return replace(found, running=running)


def publish(places: Places, current: EngineStatus) -> None:
    """Replace the status file; only the engine does this."""
    files.write_json(status_path(places), asdict(current), durable=False)
