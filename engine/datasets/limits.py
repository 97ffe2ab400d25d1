"""What datasets may use while they are made: disk but for what stays free, network at a rate and hours."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.datasets.steps import DOWNLOAD, EXTRACT, PREPARE
from engine.space import DiskFull, free_bytes
from foundation.problems import EnvironmentProblem, UsageProblem
from foundation.text import gigabytes
from foundation.workers import ReportProgress

_WRITING = (DOWNLOAD, EXTRACT, PREPARE)
_LONGEST_BOOKED = 60.0
_DAY_MINUTES = 24 * 60
_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)")


class OutsideHours(EnvironmentProblem):
    """Downloads are to go on at other hours."""


@dataclass(frozen=True)
class Hours:
    """From when to when each day, in minutes since midnight; over midnight where it ends before it begins."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Hours | None:
        """Read `22:00-06:00`; None for no text, which is always.

        Raises:
            UsageProblem: it is something else.
        """
        if not text:
            return None
        found = _HOURS.fullmatch(text.replace(" ", ""))
        if found is None:
            raise UsageProblem(f"download_hours = {text!r} are no hours", "", 'Write them as "22:00-06:00".')
        first, second, third, fourth = map(int, found.groups())
        return cls(first * 60 + second, third * 60 + fourth)

    def contain(self, moment: float) -> bool:
        """Whether a moment lies in them, by this host's time of day."""
        local = time.localtime(moment)
        since = (local.tm_hour * 60 + local.tm_min - self.start) % _DAY_MINUTES
        return since < (self.end - self.start) % _DAY_MINUTES or self.start == self.end


@dataclass(frozen=True)
class Limits:
    """What the work on a dataset may use.

    Attributes:
        keep_free: bytes of the data's disk that stay free.
        rate: bytes a second that all downloads may take together; None: all there are.
        rate_file: by which processes agree on that.
        hours: in which downloads go on, as `Hours` reads them.
    """

    keep_free: int = 0
    rate: float | None = None
    rate_file: str = ""
    hours: str = ""

    def __post_init__(self) -> None:
        """Refuse hours that are none."""
        Hours.parse(self.hours)

    def to_json(self) -> dict[str, Any]:
        """Write them for a job's arguments."""
        return asdict(self)

    @property
    def allow_downloads(self) -> bool:
        """Whether downloads may go on now."""
        hours = Hours.parse(self.hours)
        return hours is None or hours.contain(time.time())

    def keeping(self, report: ReportProgress, folder: Path) -> ReportProgress:
        """Report progress in a folder, and keep to the limits: it may take its time, or raise.

        Raises:
            DiskFull: less is free than is to stay free.
            OutsideHours: a download is to go on later.
        """
        rate = SharedRate(Path(self.rate_file), self.rate) if self.rate else None
        loaded: int | None = None

        def kept(step: str, what: str, done: int, total: int) -> None:
            nonlocal loaded
            report(step, what, done, total)
            if step in _WRITING:
                self._refuse_full(folder)
            if step == DOWNLOAD:
                if not self.allow_downloads:
                    raise outside(self.hours)
                # The first report is of what was there before.
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


def outside(hours: str) -> OutsideHours:
    """Make the problem of a download outside of its hours."""
    return OutsideHours("downloads wait", f"they go on at {hours}", "Change download_hours in config.toml.")


class SharedRate:
    """A number of bytes a second that several processes share: each books its time in a file."""

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
        """Wait until so many bytes may have come."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            content = os.pread(descriptor, 8, 0)
            booked = struct.unpack("d", content)[0] if len(content) == 8 else 0.0
            now = self._now()
            # What lies far ahead was booked before the machine's last start, or at a much smaller rate.
            begins = booked if now < booked < now + _LONGEST_BOOKED else now
            ends = begins + count / self._rate
            os.pwrite(descriptor, struct.pack("d", ends), 0)
        finally:
            os.close(descriptor)
        self._sleep(ends - now)
