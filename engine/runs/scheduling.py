"""Which runs start now: a pure decision over sweeps, slots and what is ready; it starts nothing."""

from __future__ import annotations

from dataclasses import dataclass

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Demand:
    """What one sweep would start if it could.

    Attributes:
        ready: numbers of its runs that could start now, in the order in which they shall.
        live: how many of its runs are live.
    """

    sweep_id: str
    priority: int
    concurrency: int
    cpus: float
    live: int
    ready: tuple[int, ...]


def choose(demands: list[Demand], *, free_cpus: float, at_most: int) -> list[int]:
    """Choose the runs to start, in order.

    The highest priority goes first; among equals each next slot goes to the sweep with the smallest
    part of its own concurrency in use, so that none waits for another to end. A sweep of lower
    priority gets only what those above it leave.
    """
    chosen: list[int] = []
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
        chosen.append(first.ready[taken[first.sweep_id]])
        taken[first.sweep_id] += 1
        free_cpus -= first.cpus
    return chosen


def _rank(demand: Demand, taken: int) -> tuple[int, float, str]:
    return (-demand.priority, (demand.live + taken) / demand.concurrency, demand.sweep_id)
