"""Which runs start now: a pure decision over sweeps, slots and what is ready; it starts nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from environment.runner.host.readings import GpuReader
from foundation.clock import Clock

ALL = -1
_TOLERANCE = 1e-9
_READ_SECONDS = 30.0


@dataclass(frozen=True)
class Demand:
    """What one sweep would start if it could.

    Attributes:
        live: how many of its runs are live.
        ready: numbers of its runs that could start now, in the order in which they shall.
        memory_bytes: what a run may take at most; 0 where nothing is said.
        gpus: devices that a run takes; -1 for all.
        gpu_share: what part of each device.
    """

    sweep_id: str
    priority: int
    concurrency: int
    cpus: float
    live: int
    ready: tuple[int, ...]
    memory_bytes: int = 0
    gpus: int = 0
    gpu_share: float = 1.0


@dataclass(frozen=True)
class Free:
    """What is free on this host; `gpus` holds the free part of each device."""

    cpus: float
    memory_bytes: float
    gpus: Mapping[str, float]

    def without(self, demand: Demand, devices: tuple[str, ...]) -> Free:
        """Return what is left when one more run of a demand has these devices."""
        gpus = dict(self.gpus) | {uuid: self.gpus[uuid] - demand.gpu_share for uuid in devices}
        return Free(self.cpus - demand.cpus, self.memory_bytes - demand.memory_bytes, gpus)

    def kept_for(self, demand: Demand) -> Free:
        """Return what others may take while a run of a demand, the next in turn, waits for what it lacks."""
        left = self.without(demand, ())
        return replace(left, gpus={} if demand.gpus else self.gpus)


@dataclass(frozen=True)
class Choice:
    """A run to start, with the devices that it gets."""

    run_id: int
    gpu_uuids: tuple[str, ...] = ()


def choose(demands: list[Demand], *, free: Free, at_most: int) -> list[Choice]:
    """Choose the runs to start, in order.

    The highest priority goes first; among equals each next slot goes to the sweep with the smallest
    part of its own concurrency in use, so that none waits for another to end. A sweep of lower
    priority gets only what those above it leave. A run that lacks something keeps what it needs
    free until it has all of it: smaller ones that slip by would starve it for ever.
    """
    chosen: list[Choice] = []
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
            free = free.kept_for(first)
            continue
        free = free.without(first, devices)
        chosen.append(Choice(first.ready[taken[first.sweep_id]], devices))
        taken[first.sweep_id] += 1
    return chosen


def _fitting(demand: Demand, free: Free) -> tuple[str, ...] | None:
    """Choose the devices of a run that fits; None where it does not fit."""
    if demand.cpus > free.cpus + _TOLERANCE:
        return None
    if demand.memory_bytes and demand.memory_bytes > free.memory_bytes:
        return None
    return lease(free.gpus, demand.gpus, demand.gpu_share)


def _rank(demand: Demand, taken: int) -> tuple[int, float, str]:
    return (-demand.priority, (demand.live + taken) / demand.concurrency, demand.sweep_id)


def lease(free: Mapping[str, float], count: int, share: float) -> tuple[str, ...] | None:
    """Choose devices for one run; None when too few are free.

    Args:
        free: the free part of each device, in the driver's order.
        count: how many devices; -1 for all that there are.
        share: what part of each the run takes.

    Devices that are in use already go first, so that whole ones stay free for runs that need those.
    """
    wanted = len(free) if count == ALL else count
    able = [uuid for uuid, part in free.items() if part + _TOLERANCE >= share]
    if len(able) < wanted or (wanted == 0 and count != 0):
        return None
    return tuple(sorted(able, key=lambda uuid: free[uuid])[:wanted])


class GpuPool:
    """The leases of this host's GPUs, in memory; after a restart `hold` is called for each live attempt."""

    def __init__(self, reader: GpuReader, clock: Clock) -> None:
        self._read = reader
        self._clock = clock
        self._leases: dict[int, tuple[tuple[str, ...], float]] = {}
        self._devices: tuple[str, ...] = ()
        self._read_at: float | None = None

    def hold(self, attempt_id: int, uuids: tuple[str, ...], share: float) -> None:
        """Note that an attempt holds devices."""
        if uuids:
            self._leases[attempt_id] = (uuids, share)

    def devices(self) -> tuple[str, ...]:
        """List the devices of this host, as they were not long ago."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at > _READ_SECONDS:
            self._devices = tuple(gpu.uuid for gpu in self._read())
            self._read_at = now
        return self._devices

    def free(self, live: Collection[int]) -> dict[str, float]:
        """Compute the free part of each device, dropping the leases of attempts that are not live any more."""
        self._leases = {number: held for number, held in self._leases.items() if number in live}
        free = dict.fromkeys(self.devices(), 1.0)
        for uuids, share in self._leases.values():
            for uuid in uuids:
                if uuid in free:  # one that the driver has lost is nobody's
                    free[uuid] -= share
        return free
