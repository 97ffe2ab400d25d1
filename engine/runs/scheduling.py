"""Choose which runs start now, lease GPUs to them, space out starts and retry failures; `starting` starts runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from mlebench_console.environment.runner.host.readings import Gpu, GpuReader
from mlebench_console.foundation.backoff import Backoff
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import Resources
from mlebench_console.state import runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import ENGINE
from mlebench_console.state.records import Sweep
from mlebench_console.state.runs import FailedRun
from mlebench_console.state.usage import outages

ALL = -1
_TOLERANCE = 1e-9
_READ_SECONDS = 30.0
RETRY_BACKOFF = Backoff(first=30.0, most=900.0)
"""How long a failed run waits for its retry."""


@dataclass(frozen=True)
class Demand:
    """The runs that one sweep has ready, and what each of them needs.

    Attributes:
        live: how many of its runs are live.
        ready: the numbers of its runs that could start now, in their order.
        resources: of each of them; without GPUs where these are not this host's.
        disk_bytes: what each of them may take of this host's disk; 0 without a limit.
    """

    sweep_id: str
    priority: int
    concurrency: int
    live: int
    ready: tuple[int, ...]
    resources: Resources
    disk_bytes: int = 0


@dataclass(frozen=True)
class Free:
    """Free resources of this host; `gpus` maps each device to its free share."""

    cpus: float
    memory_bytes: float
    gpus: Mapping[str, float]
    disk_bytes: float = math.inf

    def without(self, demand: Demand, devices: tuple[str, ...]) -> Free:
        """Return what is left after one more run of a demand, with these devices."""
        taken = demand.resources
        gpus = dict(self.gpus) | {uuid: self.gpus[uuid] - taken.gpu_share for uuid in devices}
        memory_bytes = self.memory_bytes - (taken.memory_bytes or 0)
        return Free(self.cpus - taken.cpus, memory_bytes, gpus, self.disk_bytes - demand.disk_bytes)

    def reserving(self, demand: Demand) -> Free:
        """Return what is left for others while the next run of a demand waits for missing resources."""
        left = self.without(demand, ())
        return replace(left, gpus={} if demand.resources.gpus else self.gpus)


def choose(demands: list[Demand], *, free: Free, at_most: int) -> list[tuple[int, tuple[str, ...]]]:
    """Choose the runs to start, in order, each with the devices that it gets.

    The highest priority goes first; among equals, each slot goes to the sweep that uses the smallest share of its own
    concurrency, so that no sweep waits for another to end. A sweep of lower priority gets only what those above it
    leave. A run that lacks a resource reserves what it needs until all of it is free: otherwise smaller runs would
    start before it for ever.
    """
    chosen: list[tuple[int, tuple[str, ...]]] = []
    taken = dict.fromkeys((demand.sweep_id for demand in demands), 0)
    waiting: set[str] = set()
    while len(chosen) < at_most:
        able = [
            demand
            for demand in demands
            if demand.sweep_id not in waiting
            and taken[demand.sweep_id] < len(demand.ready)
            and demand.live + taken[demand.sweep_id] < demand.concurrency
        ]
        if not able:
            break
        first = min(able, key=lambda demand: _rank(demand, taken[demand.sweep_id]))
        devices = _fitting(first, free)
        if devices is None:
            waiting.add(first.sweep_id)
            free = free.reserving(first)
            continue
        free = free.without(first, devices)
        chosen.append((first.ready[taken[first.sweep_id]], devices))
        taken[first.sweep_id] += 1
    return chosen


def _fitting(demand: Demand, free: Free) -> tuple[str, ...] | None:
    """Choose the devices of a run that fits; None where it does not fit."""
    wanted = demand.resources
    if wanted.cpus > free.cpus + _TOLERANCE:
        return None
    if wanted.memory_bytes and wanted.memory_bytes > free.memory_bytes:
        return None
    if demand.disk_bytes > free.disk_bytes:
        return None
    return lease(free.gpus, wanted.gpus, wanted.gpu_share)


def _rank(demand: Demand, taken: int) -> tuple[int, float, str]:
    return (-demand.priority, (demand.live + taken) / demand.concurrency, demand.sweep_id)


def lease(free: Mapping[str, float], count: int, share: float) -> tuple[str, ...] | None:
    """Choose devices for one run; None when too few are free.

    Args:
        free: the free share of each device, in the driver's order.
        count: how many devices; -1 for all.
        share: the share of each device that the run takes.

    Devices in use go first, so that whole devices stay free for runs that need them.
    """
    wanted = len(free) if count == ALL else count
    able = [uuid for uuid, part in free.items() if part + _TOLERANCE >= share]
    if len(able) < wanted or (wanted == 0 and count != 0):
        return None
    return tuple(sorted(able, key=lambda uuid: free[uuid])[:wanted])


class GpuPool:
    """The leases of this host's GPUs, in memory only; after a restart `hold` is called for each live attempt."""

    def __init__(self, reader: GpuReader, clock: Clock) -> None:
        self._read = reader
        self._clock = clock
        self._leases: dict[int, tuple[tuple[str, ...], float]] = {}
        self._devices: tuple[str, ...] = ()
        # As last read, also those that the driver has lost since.
        self._known: dict[str, Gpu] = {}
        self._read_at: float | None = None

    def hold(self, attempt_id: int, uuids: tuple[str, ...], share: float) -> None:
        """Record that an attempt uses devices."""
        if uuids:
            self._leases[attempt_id] = (uuids, share)

    def devices(self) -> tuple[str, ...]:
        """List the devices of this host, read at most 30 seconds ago."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at > _READ_SECONDS:
            found = {gpu.uuid: gpu for gpu in self._read()}
            self._devices = tuple(found)
            self._known |= found
            self._read_at = now
        return self._devices

    def holders(self) -> list[tuple[Gpu, tuple[int, ...], bool]]:
        """List the devices with the attempts that hold them, and whether the driver has lost one that is held."""
        here = self.devices()
        held = {uuid: list[int]() for uuid in here}
        for attempt_id, (uuids, _share) in self._leases.items():
            for uuid in uuids:
                held.setdefault(uuid, []).append(attempt_id)
        unknown = {uuid: Gpu(uuid, "", None, None, None) for uuid in held}
        return [((unknown | self._known)[uuid], tuple(who), uuid not in here) for uuid, who in held.items()]

    def free(self, live: Collection[int]) -> dict[str, float]:
        """Return the free share of each device, and drop the leases of attempts that are not live any more."""
        self._leases = {number: lease for number, lease in self._leases.items() if number in live}
        free = dict.fromkeys(self.devices(), 1.0)
        for uuids, share in self._leases.values():
            for uuid in uuids:
                if uuid in free:  # the driver may have lost it
                    free[uuid] -= share
        return free


class StartRamp:
    """Spaces out a sweep's starts; after a restart the time of the last start is read from the state."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._started_at: dict[str, float] = {}

    def may_start(self, sweep: Sweep, at_most: int) -> int:
        """Return how many runs of a sweep may start now, at most `at_most`."""
        if not sweep.spec.start_ramp_seconds:
            return at_most
        last = self._started_at.get(sweep.id)
        if last is None:
            last = self._started_at[sweep.id] = self._last_start(sweep.id)
        return min(at_most, int(self._clock.monotonic() - last >= sweep.spec.start_ramp_seconds))

    def note_start(self, sweep_id: str) -> None:
        """Record that a run of a sweep has been started."""
        self._started_at[sweep_id] = self._clock.monotonic()

    def _last_start(self, sweep_id: str) -> float:
        """Return the last start by the monotonic clock; now, if the wall clock was set back since."""
        started = runs.last_launch(self._database, sweep_id)
        since = math.inf if started is None else max(0.0, self._clock.now() - started)
        return self._clock.monotonic() - since


class Retrier:
    """Queues failed runs again in the sweeps that allow it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._seen_at: dict[int, float] = {}

    def step(self) -> None:
        """Queue the failed runs again that have waited long enough."""
        waiting: dict[int, float] = {}
        away = outages.unreachable(self._database)
        for run in runs.to_retry(self._database):
            waiting[run.id] = self._seen_at.get(run.id, self._clock.monotonic())
            needed = sweeps.get(self._database, run.sweep_id).spec.conditions.models.gateway if away else ()
            # The number of retries is limited: don't spend one while a needed provider is unreachable.
            if self._is_due(run, waiting[run.id]) and away.isdisjoint(needed):
                transitions.requeued(self._database, run.id, by=ENGINE, now=self._clock.now())
                del waiting[run.id]
        self._seen_at = waiting

    def _is_due(self, run: FailedRun, seen_at: float) -> bool:
        """Return whether a run has waited long enough since it failed, or was first seen if the clock was set back."""
        now = self._clock.now()
        waited = max(now - (run.ended_at or now), self._clock.monotonic() - seen_at)
        return waited >= RETRY_BACKOFF.seconds(run.failures)
