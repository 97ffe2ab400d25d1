"""Measuring what the attempts of this host use, all of them with one look at the processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from environment.runner import host, protocol
from environment.runner.gpus import Gpu
from environment.runner.host import Tree, disk_usage
from environment.runner.protocol import Limited, Order
from environment.runner.runtime import Unreachable


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
            host.network_bytes(root),
        )


class DiskMeter:
    """Measures one attempt when told to; the figure can be taken when it is there."""

    def __init__(self, attempt: Path, elsewhere: Callable[[], int], worker: Executor) -> None:
        """Prepare.

        Args:
            attempt: the directory to be measured.
            elsewhere: tells what the attempt holds in other places; may take its time, or be unreachable.
            worker: does the measuring.
        """
        self._attempt = attempt
        self._elsewhere = elsewhere
        self._worker = worker
        self._walk: Future[int | None] | None = None

    def start(self) -> None:
        """Measure, unless that is being done."""
        if self._walk is None:
            self._walk = self._worker.submit(self._measure)

    def take(self) -> int | None:
        """The bytes of a measurement that has ended since the last time; None where there is none."""
        if self._walk is None or not self._walk.done():
            return None
        walk, self._walk = self._walk, None
        return walk.result()

    def _measure(self) -> int | None:
        try:
            return disk_usage(self._attempt) + self._elsewhere()
        except Unreachable:
            return None  # half of it would look like the whole


# Less is what an interpreter needs to sleep.
_BUSY_PERCENT = 1.0


class LimitWatch:
    """Remembers when something last happened in one attempt: output, work, or a change on disk.

    Attributes:
        idle_seconds: how long nothing had happened at the last look; a new runner counts anew.
    """

    def __init__(self, attempt: Path, order: Order) -> None:
        self._attempt = attempt
        self._idle_limit = order.idle_limit_seconds
        self._disk_limit = order.disk_limit_bytes
        self._active_at: float | None = None
        self._printed: int | None = None
        self._disk: int | None = None
        self.idle_seconds = 0.0

    def look(self, measured: Measured, monotonic: float) -> Limited | None:
        """Tell which limit the attempt is over, if any."""
        idle = self.idle_seconds = self._idle_seconds(measured, monotonic)
        if self._idle_limit is not None and idle > self._idle_limit:
            text = f"nothing happened for {idle:.0f} s, at most {self._idle_limit:.0f} are allowed"
            return Limited("idle", text, measured.at)
        disk = measured.disk_bytes
        if self._disk_limit is not None and disk is not None and disk > self._disk_limit:
            text = f"it holds {disk:,} bytes on disk, at most {self._disk_limit:,} are allowed"
            return Limited("disk", text, measured.at)
        return None

    def _idle_seconds(self, measured: Measured, monotonic: float) -> float:
        times = (self._attempt / protocol.LOG).with_suffix(".times")
        printed = times.stat().st_mtime_ns if times.exists() else None
        disk = self._disk if measured.disk_bytes is None else measured.disk_bytes
        busy = measured.cpu_percent is None or measured.cpu_percent >= _BUSY_PERCENT
        if busy or printed != self._printed or disk != self._disk or self._active_at is None:
            self._active_at = monotonic
        self._printed, self._disk = printed, disk
        return monotonic - self._active_at
