"""Reading a log of any size and number of parts by position: lines and times. Searching is in `search`.

Positions count the bytes that the agent printed. A log that exceeded its size limit lacks its middle, and has a line
that says so there. Only a few blocks of the log and of its time index are in memory at any time.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mlebench_console.environment.container.run_log import LogPart, log_parts

# Longer lines are cut at multiples of this, so that the cuts are the same when reading forward and backward.
LONGEST_LINE = 1 << 16
_BLOCK = 1 << 16
# What is read through in blocks: below the allocator's mmap threshold, as mapping each anew would halve the speed.
SCAN_BLOCK = 96 << 10
_FIRST_LOOK = 512
# An entry of the index has about twenty bytes.
_LONGEST_ENTRY = 64


@dataclass(frozen=True)
class LogLine:
    """One line: its start and end (including its line feed), and its bytes without the line feed."""

    start: int
    end: int
    content: bytes

    @property
    def is_whole(self) -> bool:
        """Return whether it has a line feed."""
        return self.end - self.start > len(self.content)

    @property
    def text(self) -> str:
        """The line as text, with replacement characters for bytes that are not UTF-8."""
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True)
class LogName:
    """The name of one of several logs, and its number among them."""

    number: int
    text: str


@dataclass(frozen=True)
class Extent:
    """A range of bytes in an open part, by descriptor, so that it can be read after the part is deleted.

    Attributes:
        start: the position of the first byte in the log.
        at: the offset of that byte in the file.
    """

    descriptor: int
    start: int
    end: int
    at: int = 0


class TimeIndex:
    """The file with the times at which bytes of a log were printed; two megabytes a day, so it is searched on disk."""

    def __init__(self, log: Path) -> None:
        self._path = log.with_suffix(".times")
        self._descriptor: int | None = None
        self.size = 0

    def refresh(self) -> None:
        """Update its length, in whole lines."""
        if self._descriptor is not None and not _is_same_file(self._path, self._descriptor):
            self.close()
        if self._descriptor is None:
            self._descriptor = _open_regular(self._path)
        if self._descriptor is not None:
            size = os.fstat(self._descriptor).st_size
            begin = max(0, size - _LONGEST_ENTRY)
            self.size = begin + os.pread(self._descriptor, size - begin, begin).rfind(b"\n") + 1

    def close(self) -> None:
        """Close the file; a refresh opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self.size = None, 0

    def place_after_moment(self, moment: float) -> int:
        """Return the place in the index of the first entry after a time."""
        return self._place(1, moment)

    def place_after_offset(self, offset: int) -> int:
        """Return the place in the index of the first entry for a byte after this one."""
        return self._place(0, offset)

    def entry_at(self, place: int) -> tuple[int, float] | None:
        """Read the entry at a place: the position of a byte, and its time."""
        if place >= self.size or self._descriptor is None:
            return None
        return _entry(os.pread(self._descriptor, _LONGEST_ENTRY, place).partition(b"\n")[0])

    def entry_before(self, place: int) -> tuple[int, float] | None:
        """Read the entry that ends at a place."""
        if place == 0 or self._descriptor is None:
            return None
        begin = max(0, place - _LONGEST_ENTRY)
        return _entry(os.pread(self._descriptor, place - 1 - begin, begin).rpartition(b"\n")[2])

    def _place(self, column: int, value: float) -> int:
        """Return the place of the first entry with a greater value in a column; entries are in order of both."""

        def is_after(place: int) -> bool:
            entry = self.entry_at(self._line_at(place))
            return entry is None or entry[column] > value

        return self._line_at(bisect_left(range(self.size), True, key=is_after))

    def _line_at(self, place: int) -> int:
        """Return the start of the first line at or after a place."""
        if place == 0 or self._descriptor is None:
            return 0
        if place >= self.size:
            return self.size
        begin = place - 1
        while begin < self.size:
            block = os.pread(self._descriptor, _LONGEST_ENTRY, begin)
            newline = block.find(b"\n")
            if newline >= 0:
                return begin + newline + 1
            begin += max(1, len(block))
        return self.size


def _entry(line: bytes) -> tuple[int, float] | None:
    """Parse an entry; None if it is invalid: agents without a sandbox can write to the file, too."""
    try:
        offset, moment = line.split()
        found = int(offset), float(moment)
    except ValueError:
        return None
    return found if found[0] >= 0 and math.isfinite(found[1]) else None


class LogFile:
    """A log; `refresh` opens it, and finds new output.

    Attributes:
        index: the index of times.
        restarts: how often the log was emptied or replaced by another file since it was opened.
    """

    def __init__(self, path: Path, parts_of: Callable[[Path], tuple[LogPart, ...]] = log_parts) -> None:
        self.path = path
        self.index = TimeIndex(path)
        self.restarts = 0
        self._parts_of = parts_of
        self._open: dict[Path, int] = {}
        self._lengths: dict[Path, int] = {}
        self._extents: Sequence[Extent] = ()
        self._ends: Sequence[int] = ()

    @property
    def begin(self) -> int:
        """The first position."""
        return self._extents[0].start if self._extents else 0

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self._extents[-1].end if self._extents else 0

    def refresh(self) -> bool:
        """Update the length of the log, and return whether it has changed."""
        before, restarts = self._extents, self.restarts
        parts = self._parts_of(self.path) if self.path.parent.is_dir() else ()
        self.restarts += self.path in self._open and all(part.path != self.path for part in parts)
        self._close_all_but({part.path for part in parts})
        found = (self._opened(part) for part in parts)
        self._set([extent for extent in found if extent is not None and extent.end > extent.start])
        return before != self._extents or restarts != self.restarts

    def close(self) -> None:
        """Close the files; a refresh opens them again."""
        self._close_all_but(set())
        self.index.close()
        self._set([])

    def moments_of(self, positions: Sequence[int]) -> list[float | None]:
        """Return when the bytes at some positions, in ascending order, were printed; None if unknown."""
        index = self.index
        index.refresh()
        entries = (index.entry_before(index.place_after_offset(position)) for position in positions)
        return [None if entry is None else entry[1] for entry in entries]

    def position_at(self, moment: float) -> int:
        """Return the position where the output of a time begins, to the second."""
        self.index.refresh()
        found = self.index.entry_before(self.index.place_after_moment(moment))
        return 0 if found is None else found[0]

    def time_span(self) -> tuple[float, float] | None:
        """Return when the first and the last byte was printed; None if unknown."""
        self.index.refresh()
        first, last = self.index.entry_at(0), self.index.entry_before(self.index.size)
        return None if last is None else ((first or last)[1], last[1])

    def name_at(self, position: int) -> LogName | None:  # noqa: ARG002  # see JoinedLogs
        """Return the name of the log that a line is from, if there are several."""
        return None

    def forward(self, position: int, count: int) -> list[LogLine]:
        """Read `count` lines from a line's start on, fewer at the end of the log."""
        return list(islice(self._lines(position, self.end), count))

    def backward(self, position: int, count: int) -> list[LogLine]:
        """Read the `count` lines before a position, in order, fewer at the beginning of the log."""
        lines: list[LogLine] = []
        while len(lines) < count and position > self.begin:
            start = self.line_start(position - 1)
            if start >= position:
                break
            lines.extend(reversed(list(self._lines(start, position))))
            position = start
        return list(reversed(lines[:count]))

    def line_start(self, position: int) -> int:
        """Return the start of the line that contains the byte at `position`."""
        extent = self._extent_at(position)
        if extent is None:
            return self.begin
        if position < extent.start:
            before = self._extent_before(extent.start)
            return before.end if before is not None else 0
        begin = self._unbroken_from(extent, position - 2 * LONGEST_LINE)
        floor = max(begin, _cut_before(position))
        newline = self._last_newline(floor, position)
        if newline is not None:
            return newline + 1
        if floor == begin:
            return floor
        # `floor` is a cut only if there is no line feed within the greatest line length before it.
        newline = self._last_newline(max(begin, floor - LONGEST_LINE), floor)
        if newline is not None:
            return newline + 1
        return floor if floor - LONGEST_LINE >= begin else begin

    def count_lines(self, start: int, end: int) -> int:
        """Count the lines between two line starts."""
        return sum(block.count(b"\n") for _position, block in self.blocks(start, end, SCAN_BLOCK))

    def blocks(
        self, position: int, end: int, length: int = _BLOCK, *, of_lines: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the kept bytes between two positions in blocks, each with its position.

        With `of_lines`, blocks end at line ends, so that no match is split; only overlong lines are.
        """
        while position < end and (extent := self._extent_at(position)) is not None:
            position = max(position, extent.start)
            block = self._run(position, min(end, position + length))
            if not block:
                break
            if of_lines and position + len(block) < end:
                block = block[: block.rfind(b"\n") + 1] or block
            yield position, block
            position += len(block)

    def _run(self, position: int, end: int) -> bytes:
        """Read from a position to the next gap, across parts."""
        blocks: list[bytes] = []
        while position < end and (extent := self._extent_at(position)) is not None:
            if position < extent.start:
                break
            length, at = min(end, extent.end) - position, extent.at + position - extent.start
            blocks.append(os.pread(extent.descriptor, length, at))
            position += len(blocks[-1])
            if position < extent.end:
                break
        return b"".join(blocks)

    def _lines(self, position: int, end: int) -> Iterator[LogLine]:
        """Yield lines from a line's start on; the last one is cut at `end`."""
        while position < end and (line := self._line_from(position)) is not None:
            yield line if line.end <= end else LogLine(line.start, end, line.content[: end - line.start])
            position = line.end

    def _line_from(self, position: int) -> LogLine | None:
        extent = self._extent_at(position)
        if extent is None:
            return None
        cut = extent.start - position
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
        # Start with a small block, since most lines are short.
        length = _FIRST_LOOK
        while end > start:
            begin = max(start, end - length)
            block = self._run(begin, end)
            newline = block.rfind(b"\n")
            if newline >= 0:
                return begin + newline
            end, length = begin, _BLOCK
        return None

    def _unbroken_from(self, extent: Extent, floor: int) -> int:
        """Return the start of the gapless extents up to a given one, looking back about as far as `floor`."""
        begin, before = extent.start, self._extent_before(extent.start)
        while before is not None and begin > floor and before.end == begin:
            begin, before = before.start, self._extent_before(before.start)
        return begin

    def _extent_at(self, position: int) -> Extent | None:
        """Return the extent that contains a position, or for a position in a gap the next one."""
        place = bisect_right(self._ends, position)
        return self._extents[place] if place < len(self._extents) else None

    def _extent_before(self, position: int) -> Extent | None:
        """Return the last extent that begins before a position."""
        place = bisect_left(self._extents, position, key=lambda extent: extent.start) - 1
        return self._extents[place] if place >= 0 else None

    def _set(self, extents: Sequence[Extent]) -> None:
        self._extents, self._ends = extents, [extent.end for extent in extents]

    def _opened(self, part: LogPart) -> Extent | None:
        known = self._open.get(part.path)
        if known is not None and not _is_same_file(part.path, known):
            os.close(self._open.pop(part.path))
            self._lengths[part.path] = 0
            self.restarts += 1
        if part.path not in self._open:
            descriptor = _open_regular(part.path)
            if descriptor is None:
                return None
            self._open[part.path] = descriptor
        # The length of the whole file: a mark at its end is not part of the log once a second part exists.
        length = os.fstat(self._open[part.path]).st_size
        self.restarts += length < self._lengths.get(part.path, 0)
        self._lengths[part.path] = length
        return Extent(self._open[part.path], part.start, part.start + part.length)

    def _close_all_but(self, kept: set[Path]) -> None:
        for path in [path for path in self._open if path not in kept]:
            os.close(self._open.pop(path))
            self._lengths.pop(path, None)


def last_lines(path: Path, count: int) -> tuple[str, ...]:
    """Return the last lines of a log unsanitised, reading only a block or two; waits for the disk."""
    file = LogFile(path)
    try:
        file.refresh()
        return tuple(line.text for line in file.backward(file.end, count))
    finally:
        file.close()


def one_part(path: Path) -> tuple[LogPart, ...]:
    """Return a whole regular file as the only part; for files that are not logs with parts."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ()
    return (LogPart(path, 0, status.st_size),) if stat.S_ISREG(status.st_mode) else ()


def _open_regular(path: Path) -> int | None:
    """Open a part of a log without following links or waiting for a FIFO; None if it is gone."""
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


def _is_same_file(path: Path, descriptor: int) -> bool:
    """Return whether an open file is still the one at its path, and was not replaced."""
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def _cut_before(position: int) -> int:
    return position // LONGEST_LINE * LONGEST_LINE


def _cut_after(position: int) -> int:
    """Return where a line that begins at `position` is cut if it has no end: the first cut a whole length later."""
    return _cut_before(position + 2 * LONGEST_LINE - 1)
