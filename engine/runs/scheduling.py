"""Which runs start now: a pure decision over sweeps, slots and what is ready; it starts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.gpus.leases import lease

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Demand:
    """What one sweep would start if it could.

    Attributes:
        live: how many of its runs are live.
        ready: numbers of its runs that could start now, in the order in which they shall.
        gpus: devices that a run takes; -1 for all.
        gpu_share: what part of each device.
    """

    sweep_id: str
    priority: int
    concurrency: int
    cpus: float
    live: int
    ready: tuple[int, ...]
    gpus: int = 0
    gpu_share: float = 1.0


@dataclass(frozen=True)
class Choice:
    """A run to start, with the devices that it gets."""

    run_id: int
    gpu_uuids: tuple[str, ...] = ()


def choose(
    demands: list[Demand], *, free_cpus: float, free_gpus: Mapping[str, float], at_most: int
) -> list[Choice]:
    """Choose the runs to start, in order.

    The highest priority goes first; among equals each next slot goes to the sweep with the smallest
    part of its own concurrency in use, so that none waits for another to end. A sweep of lower
    priority gets only what those above it leave.
    """
    chosen: list[Choice] = []
    left = dict(free_gpus)
    taken = dict.fromkeys((demand.sweep_id for demand in demands), 0)
    while len(chosen) < at_most:
        able = [
            demand
            for demand in demands
            if taken[demand.sweep_id] < len(demand.ready)
            and demand.live + taken[demand.sweep_id] < demand.concurrency
        ]
        if not able:
            break
        first = min(able, key=lambda demand: _rank(demand, taken[demand.sweep_id]))
        if first.cpus > free_cpus + _TOLERANCE:
            # What is next waits for its slots: letting smaller ones slip by would starve it for ever.
            break
        devices = lease(left, first.gpus, first.gpu_share)
        if devices is None:
            break
        left |= {uuid: left[uuid] - first.gpu_share for uuid in devices}
        chosen.append(Choice(first.ready[taken[first.sweep_id]], devices))
        taken[first.sweep_id] += 1
        free_cpus -= first.cpus
    return chosen


def _rank(demand: Demand, taken: int) -> tuple[int, float, str]:
    return (-demand.priority, (demand.live + taken) / demand.concurrency, demand.sweep_id)
