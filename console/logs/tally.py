"""Counting what occurs in a log, a slice at a time, so that a log of any size is counted while nobody waits."""

from __future__ import annotations

import re
import time
from bisect import bisect_right

from console.logs.logfile import LogFile
from console.logs.needles import needle_of

# Small enough that a key is answered between two slices, large enough to count at the speed of the disk.
_SLICE = 1 << 20
_NEWLINE = b"\n"


class Tally:
    """How often a pattern, or else a line's end, occurs from a log's beginning on, as far as it is counted.

    It remembers the count at the beginning of every slice, so that the count before any position costs
    reading one slice.
    """

    def __init__(self, pattern: re.Pattern[bytes] | None = None) -> None:
        self._pattern = pattern
        self._positions = [0]
        self._counts = [0]
        self.position = 0
        self.count = 0

    def is_behind(self, file: LogFile) -> bool:
        """Whether there is more to count."""
        return self.position < file.end

    def advance(self, file: LogFile, seconds: float) -> None:
        """Count on for about as long as given."""
        until = time.monotonic() + seconds
        while self.is_behind(file):
            end = min(file.end, self.position + _SLICE)
            if self._pattern is not None and end < file.end:
                # A slice ends where a line does, so that no match is cut in two.
                start = file.line_start(end)
                end = start if start > self.position else end
            self.count += self._occurrences(file, self.position, end)
            self.position = end
            if end - self._positions[-1] >= _SLICE // 2:
                self._positions.append(end)
                self._counts.append(self.count)
            if time.monotonic() >= until:
                return

    def before(self, file: LogFile, position: int) -> int | None:
        """How many there are before a position; None where it has not been counted so far yet."""
        if position > self.position:
            return None
        place = bisect_right(self._positions, position) - 1
        return self._counts[place] + self._occurrences(file, self._positions[place], position)

    def _occurrences(self, file: LogFile, start: int, end: int) -> int:
        if self._pattern is None:
            return sum(block.count(_NEWLINE) for block in file.blocks(start, end))
        needle = needle_of(self._pattern)
        return sum(needle.count(block) for block in file.blocks(start, end))
