"""Measuring what the attempts of this host use, all of them with one look at the processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from environment.runner import network
from environment.runner.gpus import Gpu
from environment.runner.processes import Tree


@dataclass(frozen=True)
class Measured:
    """One line of usage.jsonl; None where it could not be measured."""

    at: float
    cpu_percent: float | None
    memory_bytes: int
    disk_bytes: int | None
    processes: int
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None
    network_bytes: int | None = None


class UsageMeter:
    """Measures one attempt; the processor's share needs two looks."""

    def __init__(self, gpu_uuids: tuple[str, ...] = ()) -> None:
        self._gpu_uuids = frozenset(gpu_uuids)
        self._cpu: dict[int, float] = {}
        self._looked_at: float | None = None

    def measure(
        self,
        tree: Tree,
        root: int,
        *,
        now: float,
        monotonic: float,
        disk_bytes: int | None,
        gpus: Sequence[Gpu] = (),
    ) -> Measured:
        """Measure everything below the process `root`."""
        processes = tree.below(root)
        percent = None
        if self._looked_at is not None and monotonic > self._looked_at:
            used = sum(max(0.0, found.cpu_seconds - self._cpu.get(found.pid, 0.0)) for found in processes)
            percent = round(100 * used / (monotonic - self._looked_at), 1)
        self._cpu = {found.pid: found.cpu_seconds for found in processes}
        self._looked_at = monotonic
        own = [gpu for gpu in gpus if gpu.uuid in self._gpu_uuids]
        busy = [gpu.busy_percent for gpu in own if gpu.busy_percent is not None]
        taken = [gpu.memory_used for gpu in own if gpu.memory_used is not None]
        return Measured(
            now,
            percent,
            sum(found.memory_bytes for found in processes),
            disk_bytes,
            len(processes),
            sum(busy) / len(busy) if busy else None,
            sum(taken) if taken else None,
            network.bytes_of(root),
        )
