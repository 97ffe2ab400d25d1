"""Reading a log of any size and number of parts by position: lines, times and searches.

Positions count the bytes that the agent printed. A log that exceeded its size limit lacks its middle, and has a line
that says so there. Only a few blocks of the log and of its time index are in memory at any time.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mlebench_console.console.logs.pattern import Pattern
from mlebench_console.environment.container.run_log import LogPart, log_parts

# Longer lines are cut at multiples of this, so that the cuts are the same when reading forward and backward.
LONGEST_LINE = 1 << 16
_BLOCK = 1 << 16
_FIRST_LOOK = 512
# Below the allocator's mmap threshold: mapping each block anew would halve the speed.
_SEARCH_BLOCK = 96 << 10
# Small enough to handle keys between two slices, large enough to count at the speed of the disk.
_COUNT_SLICE = 1 << 20
# An entry of the index has about twenty bytes.
_LONGEST_ENTRY = 64
_INDEX_BLOCK = 4096


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
class Label:
    """The run of a line in a merged log: its number among the runs, and its name."""

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
        self._path = self.path_of(log)
        self._descriptor: int | None = None
        self._read: tuple[tuple[int, int], list[tuple[int, int, float]]] = ((0, 0), [])
        self.size = 0

    @staticmethod
    def path_of(log: Path) -> Path:
        """Return the path of a log's index."""
        return log.with_suffix(".times")

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
        self._read = ((0, 0), [])

    def place_of_moment(self, moment: float, *, behind: bool = False) -> int:
        """Return the place in the index of the first entry at or after a time, or with `behind` only after it."""
        return self._place(2, moment, behind=behind)

    def place_of_offset(self, offset: int, *, behind: bool = False) -> int:
        """Return the place in the index of the first entry at or after a byte, or with `behind` only after it."""
        return self._place(1, offset, behind=behind)

    def entries(self, start: int, end: int) -> list[tuple[int, int, float]]:
        """Read the entries between two places, each as its place, the byte's position, and its time."""
        if start >= end or self._descriptor is None:
            return []
        if self._read[0] != (start, end):
            found, place = [], start
            for line in os.pread(self._descriptor, end - start, start).split(b"\n")[:-1]:
                entry = _entry(line)
                if entry is not None:
                    found.append((place, *entry))
                place += len(line) + 1
            self._read = ((start, end), found)
        return self._read[1]

    def entry_before(self, place: int) -> tuple[int, int, float] | None:
        """Read the entry that ends at a place."""
        begin = self._line_at(max(0, place - _LONGEST_ENTRY))
        found = self.entries(begin if begin < place else 0, place)
        return found[-1] if found else None

    def place_after(self, place: int) -> int:
        """Return the place after the entry at a place."""
        return min(self.size, self._line_at(place + 1))

    def _place(self, column: int, value: float, *, behind: bool) -> int:
        blocks = range(-(-self.size // _INDEX_BLOCK))

        def is_there(entry: tuple[int, int, float]) -> bool:
            return entry[column] > value if behind else entry[column] >= value

        def first_is_there(block: int) -> bool:
            place = self._line_at(block * _INDEX_BLOCK)
            found = self.entries(place, self.place_after(place))
            return not found or is_there(found[0])

        block = bisect_left(blocks, True, key=first_is_there)
        start = self._line_at(max(0, block - 1) * _INDEX_BLOCK)
        end = min(self.size, self._line_at(block * _INDEX_BLOCK))
        return next((entry[0] for entry in self.entries(start, end) if is_there(entry)), end)

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

    @property
    def restarted_at(self) -> int:
        """The position of the first byte printed since its last restart."""
        return self.begin

    @property
    def extents(self) -> Sequence[Extent]:
        """The extents of its bytes, in order."""
        return self._extents

    @property
    def paths(self) -> frozenset[Path]:
        """The paths of the open parts."""
        return frozenset(self._open)

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
        if not positions:
            return []
        start = index.place_of_offset(positions[0], behind=True)
        end = index.place_of_offset(positions[-1], behind=True)
        if end - start > _INDEX_BLOCK:  # far apart, such as lines that pass a filter
            places = [index.place_of_offset(position, behind=True) for position in positions]
            befores = [index.entry_before(place) for place in places]
        else:
            entries = index.entries(start, end)
            first = index.entry_before(start)
            counts = (bisect_right(entries, position, key=lambda entry: entry[1]) for position in positions)
            befores = [entries[count - 1] if count else first for count in counts]
        return [None if entry is None else entry[2] for entry in befores]

    def position_at(self, moment: float) -> int:
        """Return the position where the output of a time begins, to the second."""
        self.index.refresh()
        found = self.index.entry_before(self.index.place_of_moment(moment, behind=True))
        return 0 if found is None else found[1]

    def time_span(self) -> tuple[float, float] | None:
        """Return when the first and the last byte was printed; None if unknown."""
        self.index.refresh()
        first = self.index.entries(0, self.index.place_after(0))
        last = self.index.entry_before(self.index.size)
        return None if last is None else (first[0][2] if first else last[2], last[2])

    def label_of(self, position: int) -> Label | None:  # noqa: ARG002  # see MergedLog
        """Return the run of the line at a position; only a merged log has one."""
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

    def line_after(self, position: int) -> int:
        """Return the start of the first line at or after a position."""
        start = self.line_start(position)
        if start >= position:
            return start
        line = self._line_from(start)
        return position if line is None else line.end

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """Read the kept bytes between two positions, block by block."""
        return (block for _position, block in self._blocks(start, end))

    def count_lines(self, start: int, end: int, pattern: Pattern | None = None) -> int:
        """Count the lines between two line starts, or with a pattern those with a match."""
        if pattern is None:
            return sum(block.count(b"\n") for _position, block in self._blocks(start, end, _SEARCH_BLOCK))
        return sum(
            pattern.count(block)
            for _position, block in self._blocks(start, end, _SEARCH_BLOCK, of_lines=True)
        )

    def search(
        self,
        pattern: Pattern,
        position: int,
        *,
        back: bool = False,
        wanted: Callable[[], bool],
        until: int | None = None,
    ) -> LogLine | None:
        """Return the next line with a match after or, with `back`, before a line's start; None if there is none.

        Args:
            pattern: the pattern to search for.
            position: where to start.
            back: whether to search towards the beginning.
            wanted: returns whether the search should go on.
            until: where to stop; by default at the end, or at the beginning.
        """
        if back:
            found = self._search_back(pattern, position, self.begin if until is None else until, wanted)
        else:
            found = self._search(pattern, position, self.end if until is None else until, wanted)
        return None if found is None else self._line_from(self.line_start(found))

    def matching(
        self,
        pattern: Pattern,
        position: int,
        count: int,
        *,
        back: bool = False,
        wanted: Callable[[], bool],
        until: int | None = None,
    ) -> list[LogLine]:
        """Return the next `count` lines with a match, or with `back` the last ones before a position, in order."""
        found: list[LogLine] = []
        while len(found) < count:
            line = self.search(pattern, position, back=back, wanted=wanted, until=until)
            if line is None:
                break
            found.append(line)
            position = line.start if back else line.end
        return found[::-1] if back else found

    def _search(self, pattern: Pattern, start: int, end: int, wanted: Callable[[], bool]) -> int | None:
        for position, block in self._blocks(start, end, _SEARCH_BLOCK, of_lines=True):
            if not wanted():
                return None
            found = pattern.first(block)
            if found is not None:
                return position + found
        return None

    def _search_back(self, pattern: Pattern, end: int, floor: int, wanted: Callable[[], bool]) -> int | None:
        upper = end
        while upper > floor and wanted():
            lower = max(floor, self.line_start(max(floor, upper - _SEARCH_BLOCK)))
            lower = lower if lower < upper else floor
            for position, block in reversed(list(self._blocks(lower, upper, _SEARCH_BLOCK, of_lines=True))):
                found = pattern.last(block)
                if found is not None:
                    return position + found
            upper = lower
        return None

    def _blocks(
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


class LineCount:
    """The number of lines, or of lines with a match, from a log's beginning, as far as counted.

    It keeps the count at the start of every slice, so that the count before any position needs reading only one slice.
    """

    def __init__(self, pattern: Pattern | None = None) -> None:
        self._pattern = pattern
        self._positions = [0]
        self._counts = [0]
        self.position = 0
        self.count = 0

    def is_behind(self, file: LogFile) -> bool:
        """Return whether counting is not finished."""
        return self.position < file.end

    def advance(self, file: LogFile, seconds: float) -> None:
        """Continue counting for about this many seconds."""
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
        """Return the count before a line's start; None if that is not counted yet."""
        if position > self.position:
            return None
        place = bisect_right(self._positions, position) - 1
        return self._counts[place] + file.count_lines(self._positions[place], position, self._pattern)


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
