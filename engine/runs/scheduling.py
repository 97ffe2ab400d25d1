"""Which runs start now: a pure decision over sweeps, slots and what is ready; it starts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from environment.runner.gpus.leases import lease

_TOLERANCE = 1e-9


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
    """What of this host nobody has; `gpus` tells the free part of each device."""

    cpus: float
    memory_bytes: float
    gpus: Mapping[str, float]

    def without(self, demand: Demand, devices: tuple[str, ...]) -> Free:
        """What is left when one more run of a demand has these devices."""
        gpus = dict(self.gpus) | {uuid: self.gpus[uuid] - demand.gpu_share for uuid in devices}
        return Free(self.cpus - demand.cpus, self.memory_bytes - demand.memory_bytes, gpus)

    def kept_for(self, demand: Demand) -> Free:
        """What others may take while a run of a demand, the next in turn, waits for what it lacks."""
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
    """The devices of a run that fits; None where it does not fit."""
    if demand.cpus > free.cpus + _TOLERANCE:
        return None
    if demand.memory_bytes and demand.memory_bytes > free.memory_bytes:
        return None
    return lease(free.gpus, demand.gpus, demand.gpu_share)


def _rank(demand: Demand, taken: int) -> tuple[int, float, str]:
    return (-demand.priority, (demand.live + taken) / demand.concurrency, demand.sweep_id)
