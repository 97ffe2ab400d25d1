"""Reading a log by position, however large it is: lines around an offset, and a search; nothing here draws.

Positions count the bytes that the agent printed. Of a log that outgrew its limit the middle is missing:
reading steps over the gap with a line that says so. No more than a few blocks are ever in memory.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from console.model.needles import needle_of
from environment.runlog import LogPart, LogTimes, log_parts, log_times

# A line without an end is cut here, at positions that are the same from whichever side it is read.
LONGEST_LINE = 1 << 16
_BLOCK = 1 << 16
# Smaller than what the allocator maps anew each time, which would halve the speed.
_SEARCH_BLOCK = 96 << 10


@dataclass(frozen=True)
class LogLine:
    """One line: where it begins and ends (its line feed included), and its bytes without the line feed."""

    start: int
    end: int
    content: bytes

    @property
    def is_whole(self) -> bool:
        """Whether its line feed is there."""
        return self.end - self.start > len(self.content)

    @property
    def text(self) -> str:
        """The line as text; bytes that are no UTF-8 are shown as replacement characters."""
        return self.content.decode("utf-8", "replace")


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


@dataclass(frozen=True)
class Label:
    """Whose a line is, where a log is made of several: by its number among them, and in words."""

    number: int
    text: str


class LogFile:
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

    def label_of(self, position: int) -> Label | None:  # noqa: ARG002  # see MergedLog
        """Whose the line at a position is, in a log that is made of several."""
        return None

    def times(self) -> LogTimes:
        """When what was printed."""
        return log_times(self.path)

    def within(self, start: int, end: int) -> Iterator[Stretch]:
        """Where the bytes between two positions lie, as far as they are kept."""
        for stretch in self._stretches:
            low, high = max(start, stretch.start), min(end, stretch.end)
            if low < high:
                yield Stretch(stretch.descriptor, low, high, stretch.at + low - stretch.start)

    def forward(self, position: int, count: int) -> list[LogLine]:
        """Read `count` lines from a line's beginning on, fewer at the end."""
        lines: list[LogLine] = []
        while len(lines) < count and position < self.end:
            line = self._line_from(position)
            if line is None:
                break
            lines.append(line)
            position = line.end
        return lines

    def backward(self, position: int, count: int) -> list[LogLine]:
        """Read the `count` lines that end at a position, in their order, fewer at the beginning."""
        lines: list[LogLine] = []
        while len(lines) < count and position > self.begin:
            start = self.line_start(position - 1)
            if start >= position:
                break
            lines.extend(reversed(self._between(start, position)))
            position = start
        return list(reversed(lines[:count]))

    def line_start(self, position: int) -> int:
        """Where the line begins that holds the byte at `position`."""
        stretch = self._stretch_at(position)
        if stretch is None:
            return self.begin
        if position < stretch.start:
            return self._end_before(stretch)
        position = min(position, stretch.end - 1)
        begin = self._unbroken_from(stretch, position - 2 * LONGEST_LINE)
        floor = max(begin, _cut_before(position))
        newline = self._last_newline(floor, position)
        if newline is not None:
            return newline + 1
        if floor == begin:
            return floor
        # `floor` is a cut only if no line feed is within a line's greatest length before it.
        newline = self._last_newline(max(begin, floor - LONGEST_LINE), floor)
        if newline is not None:
            return newline + 1
        return floor if floor - LONGEST_LINE >= begin else begin

    def line_after(self, position: int) -> int:
        """Where the first line begins that begins at a position or behind it."""
        start = self.line_start(position)
        if start >= position:
            return start
        line = self._line_from(start)
        return position if line is None else line.end

    def count_lines(self, start: int, end: int) -> int:
        """Count the line feeds between two positions."""
        return sum(block.count(b"\n") for _start, block in self._blocks(start, end))

    def search(self, pattern: re.Pattern[bytes], start: int, *, wanted: Callable[[], bool]) -> LogLine | None:
        """Find the next line at or behind `start` in which the pattern is; gives up when no longer `wanted`."""
        position, needle = start, needle_of(pattern)
        while position < self.end and wanted():
            stretch = self._stretch_at(position)
            if stretch is None:
                break
            position = max(position, stretch.start)
            block = self._run(position, position + _SEARCH_BLOCK)
            if not block:
                break
            found = needle.first(block)
            if found is not None:
                return self._line_from(self.line_start(position + found))
            # The next block begins with the line that this one cuts in two, unless that never ends.
            whole = block.rfind(b"\n") + 1
            position += whole if whole and len(block) == _SEARCH_BLOCK else len(block)
        return None

    def search_back(
        self, pattern: re.Pattern[bytes], end: int, *, wanted: Callable[[], bool]
    ) -> LogLine | None:
        """Find the last line before `end` in which the pattern is; gives up when no longer `wanted`."""
        upper, needle = end, needle_of(pattern)
        while upper > self.begin and wanted():
            lower = self.line_start(max(self.begin, upper - _SEARCH_BLOCK))
            lower = lower if lower < upper else self.begin
            last: int | None = None
            for position, block in self._blocks(lower, upper, _SEARCH_BLOCK + LONGEST_LINE):
                found = needle.last(block)
                last = last if found is None else position + found
            if last is not None:
                return self._line_from(self.line_start(last))
            upper = lower
        return None

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """Read what is kept between two positions, block by block; what was cut is passed over."""
        return (block for _position, block in self._blocks(start, end, _SEARCH_BLOCK))

    def matching(
        self, pattern: re.Pattern[bytes], start: int, count: int, *, wanted: Callable[[], bool]
    ) -> list[LogLine]:
        """Find the next `count` lines at or behind `start` in which the pattern is."""
        found: list[LogLine] = []
        while len(found) < count and (line := self.search(pattern, start, wanted=wanted)) is not None:
            found.append(line)
            start = line.end
        return found

    def matching_back(
        self, pattern: re.Pattern[bytes], end: int, count: int, *, wanted: Callable[[], bool]
    ) -> list[LogLine]:
        """Find the last `count` lines before `end` in which the pattern is, in their order."""
        found: list[LogLine] = []
        while len(found) < count and (line := self.search_back(pattern, end, wanted=wanted)) is not None:
            found.append(line)
            end = line.start
        return found[::-1]

    def _line_from(self, position: int) -> LogLine | None:
        stretch = self._stretch_at(position)
        if stretch is None:
            return None
        if position < stretch.start:
            cut = stretch.start - position
            return LogLine(position, stretch.start, b"[%d bytes of the log were cut here]" % cut)
        limit = _cut_after(position)
        content, at = b"", position
        while at < limit:
            block = self._run(at, min(limit, at + (_BLOCK if content else 4096)))
            if not block:
                break
            newline = block.find(b"\n")
            if newline >= 0:
                return LogLine(position, at + newline + 1, content + block[:newline])
            content, at = content + block, at + len(block)
        return LogLine(position, at, content) if at > position else None

    def _between(self, start: int, end: int) -> list[LogLine]:
        lines, position = [], start
        while position < end:
            line = self._line_from(position)
            if line is None:
                break
            lines.append(
                line if line.end <= end else LogLine(line.start, end, line.content[: end - line.start])
            )
            position = line.end
        return lines

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


def _cut_before(position: int) -> int:
    return position // LONGEST_LINE * LONGEST_LINE


def _cut_after(position: int) -> int:
    """Where a line that begins at `position` is cut if it has no end: at the first cut a whole length on."""
    return _cut_before(position + 2 * LONGEST_LINE - 1)
