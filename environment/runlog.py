"""Reading the capped log that a warden writes, live or finished: which parts there are and what was cut.

It reads positions, not text: what the bytes mean, and making them harmless, is the reader's business.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from environment.capped_log import CUT_MARK


@dataclass(frozen=True)
class LogPart:
    """A stretch of the output that is kept: bytes `start` to `start + length` of what was printed."""

    path: Path
    start: int
    length: int


@dataclass(frozen=True)
class LogTimes:
    """When which byte was printed: two columns of equal length, both rising."""

    offsets: tuple[int, ...]
    moments: tuple[float, ...]

    def offset_at(self, moment: float) -> int:
        """The byte where the output of `moment` begins, to the second."""
        place = bisect_right(self.moments, moment) - 1
        return self.offsets[place] if place >= 0 else 0


def log_parts(log: Path) -> tuple[LogPart, ...]:
    """The kept parts in order; a gap between one's end and the next one's start was cut.

    A part may vanish while it is read, since the warden drops the oldest segment: look again then.
    """
    segments = []
    for path in log.parent.glob(f"{log.name}.*"):
        offset = path.name[len(log.name) + 1 :]
        if offset.isdigit():
            with suppress(FileNotFoundError):
                segments.append(LogPart(path, int(offset), path.stat().st_size))
    segments.sort(key=lambda part: part.start)
    if not log.exists():
        return tuple(segments)
    head = log.stat().st_size
    return (LogPart(log, 0, head - len(CUT_MARK) if segments else head), *segments)


def log_times(log: Path) -> LogTimes:
    """The time index of a log; a last line that is not whole yet is left out."""
    index = log.with_suffix(".times")
    lines = index.read_bytes().split(b"\n")[:-1] if index.exists() else []
    pairs = [line.split() for line in lines]
    return LogTimes(tuple(int(pair[0]) for pair in pairs), tuple(float(pair[1]) for pair in pairs))
