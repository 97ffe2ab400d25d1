"""The bytes of a log by their positions, however many parts it lies in; lines are made of them in `logfile`.

Positions count the bytes that the agent printed. Of a log that outgrew its limit the middle is missing:
reading steps over the gap.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from environment.container.run_log import LogPart, log_parts

_BLOCK = 1 << 16
# Smaller than what the allocator maps anew each time, which would halve the speed.
SEARCH_BLOCK = 96 << 10


@dataclass(frozen=True)
class Stretch:
    """Bytes of an opened part, by descriptor, so that it can be read on even when the warden drops it.

    Attributes:
        start: the position of the first byte.
        at: where in the file that byte is.
    """

    descriptor: int
    start: int
    end: int
    at: int = 0

    def is_continued_by(self, other: Stretch) -> bool:
        """Whether another one is what follows in the same file."""
        return self.descriptor == other.descriptor and self.at + self.end - self.start == other.at


class LogBytes:
    """A log, opened; `refresh` finds what was added since."""

    def __init__(self, path: Path, parts_of: Callable[[Path], tuple[LogPart, ...]] = log_parts) -> None:
        self.path = path
        self._parts_of = parts_of
        self._open: dict[Path, int] = {}
        self._stretches: Sequence[Stretch] = ()
        self._starts: Sequence[int] = ()
        self.refresh()

    @property
    def begin(self) -> int:
        """The first position that there is."""
        return self._stretches[0].start if self._stretches else 0

    @property
    def end(self) -> int:
        """The position behind the last byte."""
        return self._stretches[-1].end if self._stretches else 0

    def refresh(self) -> bool:
        """Look how long the log is now; tell whether that has changed."""
        before = [(stretch.start, stretch.end) for stretch in self._stretches]
        parts = self._parts_of(self.path) if self.path.parent.is_dir() else ()
        self._close_all_but({part.path for part in parts})
        found = [stretch for part in parts if (stretch := self._opened(part)) is not None]
        self._set([stretch for stretch in found if stretch.end > stretch.start])
        return before != [(stretch.start, stretch.end) for stretch in self._stretches]

    def close(self) -> None:
        """Let go of the files."""
        self._close_all_but(set())
        self._set([])

    @property
    def paths(self) -> frozenset[Path]:
        """The parts that are open."""
        return frozenset(self._open)

    def within(self, start: int, end: int) -> Iterator[Stretch]:
        """Where the bytes between two positions lie, as far as they are kept."""
        for stretch in self._stretches:
            low, high = max(start, stretch.start), min(end, stretch.end)
            if low < high:
                yield Stretch(stretch.descriptor, low, high, stretch.at + low - stretch.start)

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """Read what is kept between two positions, block by block; what was cut is passed over."""
        return (block for _position, block in self._blocks(start, end, SEARCH_BLOCK))

    def _blocks(self, start: int, end: int, length: int = _BLOCK) -> Iterator[tuple[int, bytes]]:
        position = start
        while position < end and (stretch := self._stretch_at(position)) is not None:
            position = max(position, stretch.start)
            block = self._run(position, min(end, position + length))
            if not block:
                break
            yield position, block
            position += len(block)

    def _run(self, position: int, end: int) -> bytes:
        """What is from a position on without a gap, over as many parts as it takes."""
        blocks: list[bytes] = []
        place = max(0, bisect_right(self._starts, position) - 1)
        while position < end and place < len(self._stretches):
            stretch = self._stretches[place]
            block = self._read(stretch, position, min(end, stretch.end)) if position >= stretch.start else b""
            blocks.append(block)
            position += len(block)
            if not block or position < stretch.end:
                break
            place += 1
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def _stretch_at(self, position: int) -> Stretch | None:
        """The stretch that holds a position, or the next one behind it where it is in a gap."""
        place = bisect_right(self._starts, position) - 1
        if place >= 0 and position < self._stretches[place].end:
            return self._stretches[place]
        return self._stretches[place + 1] if place + 1 < len(self._stretches) else None

    def _unbroken_from(self, stretch: Stretch, floor: int) -> int:
        """Where what leads to a stretch begins without a gap, as far back as `floor` or a little further."""
        place = self._place_of(stretch)
        while place and stretch.start > floor and self._stretches[place - 1].end == stretch.start:
            place -= 1
            stretch = self._stretches[place]
        return stretch.start

    def _last_newline(self, start: int, end: int) -> int | None:
        found = None
        for position, block in self._blocks(start, end):
            newline = block.rfind(b"\n")
            found = found if newline < 0 else position + newline
        return found

    def _end_before(self, stretch: Stretch) -> int:
        place = self._place_of(stretch)
        return self._stretches[place - 1].end if place else 0

    def _set(self, stretches: Sequence[Stretch]) -> None:
        self._stretches, self._starts = stretches, [stretch.start for stretch in stretches]

    def _place_of(self, stretch: Stretch) -> int:
        return bisect_right(self._starts, stretch.start) - 1

    def _read(self, stretch: Stretch, start: int, end: int) -> bytes:
        if end <= start:
            return b""
        return os.pread(stretch.descriptor, end - start, stretch.at + start - stretch.start)

    def _opened(self, part: LogPart) -> Stretch | None:
        if part.path not in self._open:
            descriptor = _open_regular(part.path)
            if descriptor is None:
                return None
            self._open[part.path] = descriptor
        return Stretch(self._open[part.path], part.start, part.start + part.length)

    def _close_all_but(self, kept: set[Path]) -> None:
        for path in [path for path in self._open if path not in kept]:
            os.close(self._open.pop(path))


def one_part(path: Path) -> tuple[LogPart, ...]:
    """The whole of a file that no warden writes, whatever lies beside it; nothing unless it is a regular one."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ()
    return (LogPart(path, 0, status.st_size),) if stat.S_ISREG(status.st_mode) else ()


def _open_regular(path: Path) -> int | None:
    """Open a part of a log without following links or waiting for a FIFO; None when it is gone again."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor
