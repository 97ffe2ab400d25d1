"""Reads a log by position, however large it is and in however many parts it lies: its lines, and a search.

Positions count the bytes that the agent printed. Of a log that outgrew its limit the middle is missing: a line says so
in its place. No more than a few blocks are ever in memory.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from console.logs.pattern import Pattern
from environment.container.run_log import LogPart, LogTimes, log_parts, log_times

# A line without an end is cut here, at positions that are the same from whichever side it is read.
LONGEST_LINE = 1 << 16
_BLOCK = 1 << 16
# Smaller than what the allocator maps anew each time, which would halve the speed.
_SEARCH_BLOCK = 96 << 10
# Small enough that a key is answered between two slices, large enough to count at the speed of the disk.
_COUNT_SLICE = 1 << 20


@dataclass(frozen=True)
class LogLine:
    """One line: where it begins and ends (its line feed included), and its bytes without the line feed."""

    start: int
    end: int
    content: bytes

    @property
    def is_whole(self) -> bool:
        """Return whether its line feed is there."""
        return self.end - self.start > len(self.content)

    @property
    def text(self) -> str:
        """The line as text, with replacement characters for bytes that are not UTF-8."""
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True)
class Label:
    """The run that a line is from, where a log is merged from several: its number among them, and its name."""

    number: int
    text: str


@dataclass(frozen=True)
class Extent:
    """Bytes of an opened part, by descriptor, so that they can be read even after the part is deleted.

    Attributes:
        start: the position of the first byte.
        at: where in the file that byte is.
    """

    descriptor: int
    start: int
    end: int
    at: int = 0

    def is_continued_by(self, other: Extent) -> bool:
        """Return whether another one is what follows in the same file."""
        return self.descriptor == other.descriptor and self.at + self.end - self.start == other.at


class LogFile:
    """A log; `refresh` opens it, and finds what was added since."""

    def __init__(self, path: Path, parts_of: Callable[[Path], tuple[LogPart, ...]] = log_parts) -> None:
        self.path = path
        self._parts_of = parts_of
        self._open: dict[Path, int] = {}
        self._extents: Sequence[Extent] = ()
        self._ends: Sequence[int] = ()

    @property
    def begin(self) -> int:
        """The first position that there is."""
        return self._extents[0].start if self._extents else 0

    @property
    def end(self) -> int:
        """The position behind the last byte."""
        return self._extents[-1].end if self._extents else 0

    @property
    def paths(self) -> frozenset[Path]:
        """The parts that are open."""
        return frozenset(self._open)

    def refresh(self) -> bool:
        """Look how long the log is now, and return whether that has changed."""
        before = self._extents
        parts = self._parts_of(self.path) if self.path.parent.is_dir() else ()
        self._close_all_but({part.path for part in parts})
        found = (self._opened(part) for part in parts)
        self._set([extent for extent in found if extent is not None and extent.end > extent.start])
        return before != self._extents

    def close(self) -> None:
        """Close the files; a refresh opens them again."""
        self._close_all_but(set())
        self._set([])

    def times(self) -> LogTimes:
        """Return when what was printed."""
        return log_times(self.path)

    def label_of(self, position: int) -> Label | None:  # noqa: ARG002  # see MergedLog
        """Return the run that the line at a position is from, in a log that is merged from several."""
        return None

    def forward(self, position: int, count: int) -> list[LogLine]:
        """Read `count` lines from a line's beginning on, fewer at the end."""
        return list(islice(self._lines(position, self.end), count))

    def backward(self, position: int, count: int) -> list[LogLine]:
        """Read the `count` lines that end at a position, in their order, fewer at the beginning."""
        lines: list[LogLine] = []
        while len(lines) < count and position > self.begin:
            start = self.line_start(position - 1)
            if start >= position:
                break
            lines.extend(reversed(list(self._lines(start, position))))
            position = start
        return list(reversed(lines[:count]))

    def line_start(self, position: int) -> int:
        """Return where the line begins that holds the byte at `position`."""
        place = self._place_at(position)
        if place == len(self._extents):
            return self.begin
        begin = self._extents[place].start
        if position < begin:
            return self._ends[place - 1] if place else 0
        # What leads to it without a gap, as far back as it may matter.
        while place and begin > position - 2 * LONGEST_LINE and self._ends[place - 1] == begin:
            place -= 1
            begin = self._extents[place].start
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
        """Return where the first line begins that begins at a position or behind it."""
        start = self.line_start(position)
        if start >= position:
            return start
        line = self._line_from(start)
        return position if line is None else line.end

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """Read what is kept between two positions, block by block."""
        return (block for _position, block in self._blocks(start, end))

    def count_lines(self, start: int, end: int, pattern: Pattern | None = None) -> int:
        """Count the lines between two beginnings of lines, or of these the ones with a match."""
        if pattern is None:
            return sum(block.count(b"\n") for _position, block in self._blocks(start, end, _SEARCH_BLOCK))
        return sum(
            pattern.count(block)
            for _position, block in self._blocks(start, end, _SEARCH_BLOCK, of_lines=True)
        )

    def search(
        self, pattern: Pattern, position: int, *, back: bool = False, wanted: Callable[[], bool]
    ) -> LogLine | None:
        """Find the next line with a match from a line's beginning on, or back from there; stop once unwanted."""
        found = (self._search_back if back else self._search)(pattern, position, wanted)
        return None if found is None else self._line_from(self.line_start(found))

    def matching(
        self, pattern: Pattern, position: int, count: int, *, back: bool = False, wanted: Callable[[], bool]
    ) -> list[LogLine]:
        """Find the next `count` lines with a match, or the last ones before a position, in their order."""
        found: list[LogLine] = []
        while len(found) < count:
            line = self.search(pattern, position, back=back, wanted=wanted)
            if line is None:
                break
            found.append(line)
            position = line.start if back else line.end
        return found[::-1] if back else found

    def extents(self, start: int, end: int) -> Iterator[Extent]:
        """Return where the bytes between two positions lie, as far as they are kept."""
        for extent in self._extents:
            low, high = max(start, extent.start), min(end, extent.end)
            if low < high:
                yield Extent(extent.descriptor, low, high, extent.at + low - extent.start)

    def _search(self, pattern: Pattern, start: int, wanted: Callable[[], bool]) -> int | None:
        for position, block in self._blocks(start, self.end, _SEARCH_BLOCK, of_lines=True):
            if not wanted():
                return None
            found = pattern.first(block)
            if found is not None:
                return position + found
        return None

    def _search_back(self, pattern: Pattern, end: int, wanted: Callable[[], bool]) -> int | None:
        upper = end
        while upper > self.begin and wanted():
            lower = self.line_start(max(self.begin, upper - _SEARCH_BLOCK))
            lower = lower if lower < upper else self.begin
            for position, block in reversed(list(self._blocks(lower, upper, _SEARCH_BLOCK, of_lines=True))):
                found = pattern.last(block)
                if found is not None:
                    return position + found
            upper = lower
        return None

    def _blocks(
        self, position: int, end: int, length: int = _BLOCK, *, of_lines: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """Read what is kept between two positions block by block, each with its position.

        Blocks of lines end where a line does, so that no match is cut in two; only endless lines are cut.
        """
        while position < end and (place := self._place_at(position)) < len(self._extents):
            position = max(position, self._extents[place].start)
            block = self._run(position, min(end, position + length))
            if not block:
                break
            if of_lines and position + len(block) < end:
                block = block[: block.rfind(b"\n") + 1] or block
            yield position, block
            position += len(block)

    def _run(self, position: int, end: int) -> bytes:
        """Read from a position on without a gap, over as many parts as it takes."""
        blocks: list[bytes] = []
        place = self._place_at(position)
        while position < end and place < len(self._extents):
            extent = self._extents[place]
            if position < extent.start:
                break
            length, at = min(end, extent.end) - position, extent.at + position - extent.start
            blocks.append(os.pread(extent.descriptor, length, at))
            position += len(blocks[-1])
            if position < extent.end:
                break
            place += 1
        return b"".join(blocks)

    def _lines(self, position: int, end: int) -> Iterator[LogLine]:
        """Read lines from a line's beginning on; the last one ends at `end` even if that is within it."""
        while position < end and (line := self._line_from(position)) is not None:
            yield line if line.end <= end else LogLine(line.start, end, line.content[: end - line.start])
            position = line.end

    def _line_from(self, position: int) -> LogLine | None:
        place = self._place_at(position)
        if place == len(self._extents):
            return None
        cut = self._extents[place].start - position
        if cut > 0:
            return LogLine(position, position + cut, b"[%d bytes of the log were cut here]" % cut)
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

    def _last_newline(self, start: int, end: int) -> int | None:
        found = None
        for position, block in self._blocks(start, end):
            newline = block.rfind(b"\n")
            found = found if newline < 0 else position + newline
        return found

    def _place_at(self, position: int) -> int:
        """Return the place of the extent that holds a position, or of the next one behind it where it is in a gap."""
        return bisect_right(self._ends, position)

    def _set(self, extents: Sequence[Extent]) -> None:
        self._extents, self._ends = extents, [extent.end for extent in extents]

    def _opened(self, part: LogPart) -> Extent | None:
        if part.path not in self._open:
            descriptor = _open_regular(part.path)
            if descriptor is None:
                return None
            self._open[part.path] = descriptor
        return Extent(self._open[part.path], part.start, part.start + part.length)

    def _close_all_but(self, kept: set[Path]) -> None:
        for path in [path for path in self._open if path not in kept]:
            os.close(self._open.pop(path))


class LineCount:
    """How many lines, or lines with a match, there are from a log's beginning on, as far as they are counted.

    It keeps the count at the beginning of every slice, so that the count before any position costs reading one slice.
    """

    def __init__(self, pattern: Pattern | None = None) -> None:
        self._pattern = pattern
        self._positions = [0]
        self._counts = [0]
        self.position = 0
        self.count = 0

    def is_behind(self, file: LogFile) -> bool:
        """Return whether there is more to count."""
        return self.position < file.end

    def advance(self, file: LogFile, seconds: float) -> None:
        """Count on for about as long as given."""
        until = time.monotonic() + seconds
        while self.is_behind(file):
            end = min(file.end, self.position + _COUNT_SLICE)
            if self._pattern is not None and end < file.end:
                start = file.line_start(end)
                end = start if start > self.position else end
            self.count += file.count_lines(self.position, end, self._pattern)
            self.position = end
            if end - self._positions[-1] >= _COUNT_SLICE // 2:
                self._positions.append(end)
                self._counts.append(self.count)
            if time.monotonic() >= until:
                return

    def before(self, file: LogFile, position: int) -> int | None:
        """Return how many there are before a line's beginning; None where it has not been counted so far yet."""
        if position > self.position:
            return None
        place = bisect_right(self._positions, position) - 1
        return self._counts[place] + file.count_lines(self._positions[place], position, self._pattern)


def last_lines(path: Path, count: int) -> tuple[str, ...]:
    """Return the last lines of a log as they are, reading no more than a block or two; waits for the disk."""
    file = LogFile(path)
    try:
        file.refresh()
        return tuple(line.text for line in file.backward(file.end, count))
    finally:
        file.close()


def one_part(path: Path) -> tuple[LogPart, ...]:
    """Return the whole of a file that is not a capped log, whatever lies beside it; nothing unless it is regular."""
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
    """Return where a line that begins at `position` is cut if it has no end: at the first cut a whole length on."""
    return _cut_before(position + 2 * LONGEST_LINE - 1)
