"""Reading a log's lines by position, however large it is: those around an offset, and a search; nothing here draws.

Where the middle of a log is missing, a line says so. No more than a few blocks are ever in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from console.logs.logbytes import SEARCH_BLOCK, LogBytes
from console.logs.needles import needle_of
from environment.container.run_log import LogTimes, log_times

# A line without an end is cut here, at positions that are the same from whichever side it is read.
LONGEST_LINE = 1 << 16
_BLOCK = 1 << 16


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
class Label:
    """Whose a line is, where a log is made of several: by its number among them, and in words."""

    number: int
    text: str


class LogFile(LogBytes):
    """A log, opened, line by line."""

    def label_of(self, position: int) -> Label | None:  # noqa: ARG002  # see MergedLog
        """Whose the line at a position is, in a log that is made of several."""
        return None

    def times(self) -> LogTimes:
        """When what was printed."""
        return log_times(self.path)

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
            block = self._run(position, position + SEARCH_BLOCK)
            if not block:
                break
            found = needle.first(block)
            if found is not None:
                return self._line_from(self.line_start(position + found))
            # The next block begins with the line that this one cuts in two, unless that never ends.
            whole = block.rfind(b"\n") + 1
            position += whole if whole and len(block) == SEARCH_BLOCK else len(block)
        return None

    def search_back(
        self, pattern: re.Pattern[bytes], end: int, *, wanted: Callable[[], bool]
    ) -> LogLine | None:
        """Find the last line before `end` in which the pattern is; gives up when no longer `wanted`."""
        upper, needle = end, needle_of(pattern)
        while upper > self.begin and wanted():
            lower = self.line_start(max(self.begin, upper - SEARCH_BLOCK))
            lower = lower if lower < upper else self.begin
            last: int | None = None
            for position, block in self._blocks(lower, upper, SEARCH_BLOCK + LONGEST_LINE):
                found = needle.last(block)
                last = last if found is None else position + found
            if last is not None:
                return self._line_from(self.line_start(last))
            upper = lower
        return None

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


def _cut_before(position: int) -> int:
    return position // LONGEST_LINE * LONGEST_LINE


def _cut_after(position: int) -> int:
    """Where a line that begins at `position` is cut if it has no end: at the first cut a whole length on."""
    return _cut_before(position + 2 * LONGEST_LINE - 1)
