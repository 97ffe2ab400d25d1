"""Resource usage of a running attempt, and checks of the limits that the kernel does not enforce."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlebench_console.environment.container.processes import ProcessTree
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.readings import Gpu, network_bytes
from mlebench_console.environment.runner.protocol import LimitExceeded, Order
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problem_codes import EndReason

# An interpreter that sleeps uses less.
_BUSY_PERCENT = 1.0


class UsageMeter:
    """Measures one attempt; the processor usage needs two measurements."""

    def __init__(self, attempt: Path, order: Order) -> None:
        self._output_times = (attempt / protocol.LOG).with_suffix(".times")
        self._open_calls = attempt / protocol.OPEN_CALLS if order.providers else None
        self._gpu_uuids = frozenset(order.gpu_uuids)
        self._cpu: dict[int, float] = {}
        self._measured_at: float | None = None
        self._active_at: float | None = None
        self._disk_bytes: int | None = None
        self._traces: tuple[int | None, ...] = ()

    def measure(
        self,
        tree: ProcessTree,
        root: int,
        *,
        now: float,
        monotonic: float,
        disk_bytes: int | None,
        gpus: Sequence[Gpu] = (),
    ) -> UsageSample:
        """Measure all descendants of `root`; `disk_bytes` is None unless it was just measured."""
        processes = tree.below(root)
        percent = None
        if self._measured_at is not None and monotonic > self._measured_at:
            used = sum(max(0.0, found.cpu_seconds - self._cpu.get(found.pid, 0.0)) for found in processes)
            percent = round(100 * used / (monotonic - self._measured_at), 1)
        self._cpu = {found.pid: found.cpu_seconds for found in processes}
        self._measured_at = monotonic
        own = [gpu for gpu in gpus if gpu.uuid in self._gpu_uuids]
        busy = [gpu.busy_percent for gpu in own if gpu.busy_percent is not None]
        taken = [gpu.memory_used for gpu in own if gpu.memory_used is not None]
        return UsageSample(
            now,
            percent,
            sum(found.memory_bytes for found in processes),
            disk_bytes,
            len(processes),
            sum(busy) / len(busy) if busy else None,
            sum(taken) if taken else None,
            network_bytes(root),
            self._idle_seconds(percent, disk_bytes, monotonic),
        )

    def _idle_seconds(self, cpu_percent: float | None, disk_bytes: int | None, monotonic: float) -> float:
        called_at = None if self._open_calls is None else _changed_at(self._open_calls)
        self._disk_bytes = self._disk_bytes if disk_bytes is None else disk_bytes
        traces = (_changed_at(self._output_times), called_at, self._disk_bytes)
        works = cpu_percent is None or cpu_percent >= _BUSY_PERCENT
        if works or traces != self._traces or self._active_at is None:
            self._active_at = monotonic
        self._traces = traces
        return round(monotonic - self._active_at, 1)


def _changed_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def limit_exceeded(usage: UsageSample, order: Order) -> LimitExceeded | None:
    """Return the limit that an attempt exceeds, if any."""
    idle, most_idle = usage.idle_seconds, order.conditions.idle_limit_seconds
    if most_idle is not None and idle > most_idle:
        text = f"nothing happened for {idle:.0f} s, at most {most_idle:.0f} are allowed"
        return LimitExceeded(EndReason.IDLE, text, usage.at)
    disk, most_disk = usage.disk_bytes, order.conditions.disk_limit_bytes
    if most_disk is not None and disk is not None and disk > most_disk:
        text = f"it holds at least {disk:,} bytes on disk, at most {most_disk:,} are allowed"
        return LimitExceeded(EndReason.DISK, text, usage.at)
    return None
