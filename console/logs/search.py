"""Searching logs by regular expressions: the next line with a match, all of them, and how many there are.

RE2 compiles the expressions: any one takes time in proportion to the log.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

from mlebench_console.console.logs.reader import SCAN_BLOCK, LogFile, LogLine
from mlebench_console.foundation.problems import UsageProblem

# Small enough to handle keys between two slices, large enough to count at the speed of the disk.
_COUNT_SLICE = 1 << 20


@dataclass(frozen=True)
class Pattern:
    """A regular expression that matches within single lines.

    Attributes:
        expression: in RE2's syntax, which is Python's without look-around and back-references.
        any_case: ignores case.
    """

    expression: str
    any_case: bool = False

    @classmethod
    def typed(cls, expression: str) -> Pattern:
        """Return the pattern for a typed expression; it ignores case unless it contains a capital letter.

        Raises:
            UsageProblem: it is not a valid regular expression for RE2.
        """
        pattern = cls(expression, any_case=not any(letter.isupper() for letter in expression))
        import re2

        try:
            _ = pattern._compiled
        except re2.error as error:
            reason = error.args[0].decode("utf-8", "replace")
            if reason.startswith(("invalid perl operator", "invalid escape sequence: \\")):
                advice = "Look-around, atomic groups and back-references are not supported."
                raise UsageProblem(f"can't search for '{expression}'", reason, advice) from error
            raise UsageProblem(f"'{expression}' is not a regular expression", reason) from error
        return pattern

    def first(self, block: bytes) -> int | None:
        """Return the start of the first match in a block of lines; None without a match."""
        found = self._compiled.search(block)
        return None if found is None else int(found.start())

    def last(self, block: bytes) -> int | None:
        """Return the start of the first match in the last line with one; None without a match."""
        return max(self._lines_with_a_match(block), default=None)

    def count(self, block: bytes) -> int:
        """Count the lines with a match."""
        return sum(1 for _place in self._lines_with_a_match(block))

    def spans(self, line: bytes) -> list[tuple[int, int]]:
        """Return the start and end of each non-empty match in a line."""
        return [(*found.span(),) for found in self._compiled.finditer(line) if found.end() > found.start()]

    def _lines_with_a_match(self, block: bytes) -> Iterator[int]:
        search, start = self._compiled.search, 0
        while (found := search(block, start)) is not None:
            yield found.start()
            start = block.find(b"\n", found.end()) + 1
            if not start:
                return

    # Works in a frozen dataclass, since cached_property writes to the instance's dictionary directly.
    @cached_property
    def _compiled(self) -> Any:
        import re2

        options = re2.Options()
        options.case_sensitive = not self.any_case
        options.never_nl = True
        options.log_errors = False
        return re2.compile(b"(?m)" + self.expression.encode("utf-8", "replace"), options)


# Matches lines that look like errors.
ERRORS = Pattern(
    r"\w(?:Error|Exception)\b"
    r"|(?i:\b(?:error|exception|traceback|fatal|failed|out of memory|oom|killed|segmentation fault)\b)"
)


def search(
    file: LogFile,
    pattern: Pattern,
    position: int,
    *,
    back: bool = False,
    wanted: Callable[[], bool],
    until: int | None = None,
) -> LogLine | None:
    """Return the next line with a match after or, with `back`, before a line's start; None if there is none.

    Args:
        file: the log.
        pattern: the pattern to search for.
        position: where to start.
        back: whether to search towards the beginning.
        wanted: returns whether the search should go on.
        until: where to stop; by default at the end, or at the beginning.
    """
    if back:
        place = _match_before(file, pattern, position, file.begin if until is None else until, wanted)
    else:
        place = _match_after(file, pattern, position, file.end if until is None else until, wanted)
    return None if place is None else next(iter(file.forward(file.line_start(place), 1)), None)


class MatchingLines:
    """The lines of a log with a match of a pattern, read as all lines of a `LogFile` are."""

    def __init__(self, file: LogFile, pattern: Pattern, wanted: Callable[[], bool]) -> None:
        self._file = file
        self._search = partial(search, file, pattern, wanted=wanted)

    def lines(self, position: int, end: int) -> Iterator[LogLine]:
        """Yield those between two line starts."""
        while position < end and (line := self._search(position, until=end)) is not None:
            yield line
            position = line.end

    def forward(self, position: int, count: int) -> list[LogLine]:
        """Read the next `count` from a line's start on, fewer at the end of the log."""
        return list(islice(self.lines(position, self._file.end), count))

    def backward(self, position: int, count: int) -> list[LogLine]:
        """Read the last `count` before a line's start, in order, fewer at the beginning of the log."""
        lines: list[LogLine] = []
        while len(lines) < count and (line := self._search(position, back=True)) is not None:
            lines.append(line)
            position = line.start
        return lines[::-1]


def count_lines(file: LogFile, start: int, end: int, pattern: Pattern | None = None) -> int:
    """Count the lines between two line starts, or with a pattern those with a match."""
    if pattern is None:
        return file.count_lines(start, end)
    return sum(
        pattern.count(block) for _position, block in file.blocks(start, end, SCAN_BLOCK, of_lines=True)
    )


def _match_after(
    file: LogFile, pattern: Pattern, start: int, end: int, wanted: Callable[[], bool]
) -> int | None:
    for position, block in file.blocks(start, end, SCAN_BLOCK, of_lines=True):
        if not wanted():
            return None
        place = pattern.first(block)
        if place is not None:
            return position + place
    return None


def _match_before(
    file: LogFile, pattern: Pattern, end: int, floor: int, wanted: Callable[[], bool]
) -> int | None:
    upper = end
    while upper > floor and wanted():
        lower = max(floor, file.line_start(max(floor, upper - SCAN_BLOCK)))
        lower = lower if lower < upper else floor
        for position, block in reversed(list(file.blocks(lower, upper, SCAN_BLOCK, of_lines=True))):
            place = pattern.last(block)
            if place is not None:
                return position + place
        upper = lower
    return None


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
            self.count += count_lines(file, self.position, end, self._pattern)
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
        return self._counts[place] + count_lines(file, self._positions[place], position, self._pattern)
