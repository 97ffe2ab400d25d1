"""Limits for the work on datasets: free disk space to keep, and the rate of downloads."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlebench_console.engine.datasets.steps import DOWNLOAD, EXTRACT, PREPARE
from mlebench_console.engine.space import DiskFull, free_bytes
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.text import gigabytes
from mlebench_console.foundation.workers import ReportProgress

_WRITING = (DOWNLOAD, EXTRACT, PREPARE)
_LONGEST_BOOKED = 60.0


@dataclass(frozen=True)
class Limits:
    """Limits for the work on a dataset.

    Attributes:
        keep_free: bytes of the data's disk that must stay free.
        rate: bytes per second for all downloads together; None: unlimited.
        rate_file: the file through which processes share the rate.
    """

    keep_free: int = 0
    rate: float | None = None
    rate_file: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return them as arguments of a job."""
        return asdict(self)

    def keeping(self, report: ReportProgress, folder: Path) -> ReportProgress:
        """Return a function that reports progress in a folder and enforces the limits, by waiting or raising.

        Raises:
            DiskFull: less is free than must stay free.
        """
        rate = SharedRate(Path(self.rate_file), self.rate) if self.rate else None
        loaded: int | None = None

        def kept(step: str, what: str, done: int, total: int) -> None:
            nonlocal loaded
            report(step, what, done, total)
            if step in _WRITING:
                self._refuse_full(folder)
            if step == DOWNLOAD:
                # The first report is of bytes downloaded earlier.
                if rate is not None and loaded is not None and done > loaded:
                    rate.take(done - loaded)
                loaded = done

        return kept

    def _refuse_full(self, folder: Path) -> None:
        free = free_bytes(folder)
        if free < self.keep_free:
            raise DiskFull(
                "the disk is full",
                f"{gigabytes(free)} are free in {folder}, {gigabytes(self.keep_free)} must stay free",
                "Free some space; it then continues by itself.",
            )


class SharedRate:
    """A rate in bytes per second that several processes share: each books its time in a file."""

    def __init__(
        self,
        path: Path,
        rate: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._rate = rate
        self._now = now
        self._sleep = sleep

    def take(self, count: int) -> None:
        """Wait as long as `count` bytes take at the shared rate."""
        with FileLock(self._path) as lock:
            lock.acquire(wait=True)
            content = os.pread(lock.descriptor, 8, 0)
            booked = struct.unpack("d", content)[0] if len(content) == 8 else 0.0
            now = self._now()
            # A time far ahead was booked before the machine's last start, or at a much lower rate.
            begins = booked if now < booked < now + _LONGEST_BOOKED else now
            ends = begins + count / self._rate
            os.pwrite(lock.descriptor, struct.pack("d", ends), 0)
        self._sleep(ends - now)
