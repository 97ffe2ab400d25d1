"""The engine's status: one small file, replaced every other second, and its kernel lock."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from engine.places import Places
from environment.runner import protocol
from foundation import files, locks
from foundation.problems import StateProblem

STATUS_NAME = "engine.status.json"


@dataclass(frozen=True)
class EngineStatus:
    """The state of the engine and its host; what is not known is None.

    With `running` false the other facts are the last ones that an engine wrote.

    Attributes:
        live: runs for which something is done; `waiting` of them are with a batch system that does not run them yet.
        problem: all that is wrong at the moment, in one line; empty when nothing is.
        problems: the same, one by one.
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
    load1: float | None = None
    cpus: int | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    state_disk_free: int | None = None
    state_disk_total: int | None = None
    data_disk_free: int | None = None
    data_disk_total: int | None = None
    gpus: int | None = None
    isolation: str = ""
    problem: str = ""
    problems: tuple[str, ...] = ()


_NAMES = frozenset(field.name for field in fields(EngineStatus))


def lock_path(places: Places) -> Path:
    """Return the file that a living engine holds locked."""
    return places.state_dir / protocol.ENGINE_LOCK


def owner_path(places: Places) -> Path:
    """Return the file that the command holds locked for whose work alone this state was made, if there is one."""
    return places.state_dir / "owner.lock"


def status_path(places: Places) -> Path:
    """Return the file in which the engine keeps its status."""
    return places.state_dir / STATUS_NAME


def status(places: Places) -> EngineStatus:
    """Read the engine's status; costs one file read and one test of a lock."""
    running = locks.is_held(lock_path(places))
    try:
        values = json.loads(status_path(places).read_bytes())
    except FileNotFoundError:
        return EngineStatus(running=running)
    except (OSError, ValueError) as error:
        raise StateProblem(
            f"{status_path(places)} can't be read", str(error), "Remove it; a running engine writes it again."
        ) from error
    known = {name: value for name, value in values.items() if name in _NAMES}
    known["problems"] = tuple(known.get("problems", ()))
    return EngineStatus(**(known | {"running": running}))


def publish(places: Places, current: EngineStatus) -> None:
    """Replace the status file; only the engine does this."""
    files.write_json(status_path(places), asdict(current), durable=False)
