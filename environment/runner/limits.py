"""When an attempt has gone over a limit that no kernel holds: silent for too long, or too much on disk."""

from __future__ import annotations

from pathlib import Path

from environment.runner import protocol
from environment.runner.protocol import Limited, Order
from environment.runner.usage import Measured

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
