"""Telling how the engine and its host are, for everyone who looks at the status file."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from engine.control.status import EngineStatus, publish
from engine.notifications.troubles import full_disks
from engine.places import Places
from engine.settings import Settings
from environment.runner.process import bubblewrap
from foundation.clock import Clock


class Heartbeat:
    """Collects the facts and replaces the status file."""

    def __init__(self, places: Places, clock: Clock, settings: Settings) -> None:
        self._places = places
        self._clock = clock
        self._settings = settings
        self._started_at = clock.now()
        self._latest = EngineStatus()
        why_not = bubblewrap.why_unavailable()
        self._isolation = f"none: {why_not}" if why_not else "bubblewrap"

    def beat(
        self,
        *,
        live: int,
        queued: int,
        datasets_working: int,
        grading: int,
        runner_alive: bool,
        slots_used: float,
        gpus: int,
        problem: str,
    ) -> None:
        """Publish the status of this moment."""
        memory_total, memory_available = _memory()
        state_disk = _disk(self._places.state_dir)
        data_disk = _disk(self._places.data_dir)
        self._latest = EngineStatus(
            running=True,
            pid=os.getpid(),
            host=socket.gethostname(),
            version=version("mlebench-console"),
            started_at=self._started_at,
            heartbeat_at=self._clock.now(),
            live=live,
            queued=queued,
            datasets_working=datasets_working,
            grading=grading,
            runner_alive=runner_alive,
            slots=self._settings.cpus,
            slots_used=slots_used,
            memory_for_runs=self._settings.memory_bytes,
            load1=os.getloadavg()[0],
            cpus=os.cpu_count(),
            memory_total=memory_total,
            memory_available=memory_available,
            state_disk_free=state_disk[0],
            state_disk_total=state_disk[1],
            data_disk_free=data_disk[0],
            data_disk_total=data_disk[1],
            gpus=gpus,
            isolation=self._isolation,
            problem=problem,
        )
        publish(self._places, self._latest)

    def full_disks(self) -> tuple[str, ...]:
        """Which disks were full at the last beat, in words."""
        return full_disks(self._latest)


def _memory() -> tuple[int | None, int | None]:
    facts = dict(_meminfo(Path("/proc/meminfo").read_text().splitlines()))
    return facts.get("MemTotal"), facts.get("MemAvailable")


def _meminfo(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    for line in lines:
        name, _, rest = line.partition(":")
        yield name, int(rest.split()[0]) * 1024


def _disk(folder: Path) -> tuple[int | None, int | None]:
    """Free and total bytes where a folder is or would be made."""
    place = folder
    while not place.exists():
        place = place.parent
    found = shutil.disk_usage(place)
    return found.free, found.total
