"""A place in a log: what of it is seen, moving, searching, leaving out lines; no thread and nothing drawn."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from console.logs.logfile import LogFile, LogLine
from console.logs.logpage import Page
from console.logs.moments import Stretch, read_moment
from console.logs.tally import Tally
from environment.container.run_log import LogTimes
from foundation.problems import UsageProblem

# What is kept of the lines that a filter let through while the log grows.
_MOST_NEW = 2000
# A selection is read into memory; of more only the beginning is taken.
_MOST_SELECTED = 32 << 20


class LogPlace:
    """Where a reader of a log is; `wanted` tells whether a long search is still of interest."""

    def __init__(self, height: int, wanted: Callable[[], bool]) -> None:
        self.height = height
        self.note = ""
        self._wanted = wanted
        self._following = True
        self._top = 0
        self._counted_to: int | None = None
        self._behind = 0
        self._pattern: re.Pattern[bytes] | None = None
        self._hit: int | None = None
        self._hits: Tally | None = None
        self._filter: re.Pattern[bytes] | None = None
        self._kept: list[LogLine] | None = None
        self._kept_to = 0
        self._lines: Tally | None = None
        self._times: LogTimes | None = None
        self._times_to = -1
        self._with_times = False
        self._mark: int | None = None
        self._page_end = 0

    def page(self, file: LogFile) -> Page:
        """What is seen from here now."""
        if self._following:
            lines = self._tail(file)
            self._top = lines[0].start if lines else file.begin
            self._behind, self._counted_to = 0, file.end
        else:
            self._top = max(self._top, file.begin)
            lines = self._forward(file, self._top, self.height)
            counted = file.end if self._counted_to is None else self._counted_to
            self._behind += file.count_lines(counted, file.end)
            self._counted_to = max(counted, file.end)
        length = file.end - file.begin
        self._page_end = lines[-1].end if lines else file.end
        return Page(
            lines=tuple(lines),
            following=self._following,
            behind=self._behind,
            share=(self._page_end - file.begin) / length if length else 1.0,
            size=file.end,
            exists=file.end > 0,
            hit=self._hit,
            hits=self._hits.count if self._hits is not None else None,
            hit_number=self._hit_number(file),
            counting=self.is_counting(file),
            filtered=self._filter is not None,
            mark=self._mark,
            numbers=self._numbers(file, lines),
            moments=self._moments(file, lines),
            labels=tuple(file.label_of(line.start) for line in lines),
            note=self.note,
        )

    def is_counting(self, file: LogFile) -> bool:
        """Whether there is something left to count."""
        return any(tally is not None and tally.is_behind(file) for tally in (self._hits, self._lines))

    def count_on(self, file: LogFile, seconds: float) -> None:
        """Go on counting what is wanted, for about as long as given."""
        for tally in (self._hits, self._lines):
            if tally is not None and tally.is_behind(file):
                tally.advance(file, seconds)
                return

    def move(self, file: LogFile, lines: int) -> None:
        """Go down by lines, or up by a negative number."""
        self.note = ""
        if lines < 0:
            before = self._backward(file, self._top, -lines)
            if before:
                self._detach(file)
                self._top = before[0].start
        elif not self._following:
            ahead = self._forward(file, self._top, lines + self.height)
            if len(ahead) < lines + self.height:
                self.to_end()
            else:
                self._top = ahead[lines].start

    def to_top(self, file: LogFile) -> None:
        """Go to the beginning."""
        self.note = ""
        self._detach(file)
        self._top = file.begin

    def to_end(self) -> None:
        """Go to the end and stay there."""
        self._following, self.note = True, ""

    def to_moment(self, file: LogFile, text: str) -> None:
        """Go to what was printed at a moment that a person typed."""
        times = self._read_times(file)
        if not times.offsets:
            self.note = "this log has no times"
            return
        try:
            moment = read_moment(text, Stretch(times.moments[0], times.moments[-1]))
        except UsageProblem as problem:
            self.note = " ".join(str(problem).splitlines())
            return
        self.note = ""
        self._detach(file)
        self._with_times = True
        self._top = file.line_start(max(file.begin, min(times.offset_at(moment), file.end - 1)))

    def search(self, file: LogFile, pattern: re.Pattern[bytes] | None, *, back: bool) -> None:
        """Go to the next line with a pattern, or with the last one searched for."""
        if pattern is not None and pattern != self._pattern:
            self._pattern, self._hits = pattern, Tally(pattern)
        if self._pattern is None:
            self.note = "nothing to search for yet: / begins"
            return
        start = self._search_from(file, back=back)
        if back:
            found = file.search_back(self._pattern, start, wanted=self._wanted)
        else:
            found = file.search(self._pattern, start, wanted=self._wanted)
        if found is None:
            self.note = f"no {'earlier' if back else 'further'} hit" if self._wanted() else "search stopped"
            return
        self.note = ""
        self._detach(file)
        self._hit = found.start
        # A few lines above the hit tell what led to it.
        above = self._backward(file, found.start, min(5, self.height // 3))
        self._top = above[0].start if above else found.start

    def only_lines_with(self, pattern: re.Pattern[bytes] | None) -> None:
        """Leave out all lines without a pattern; None shows them all again."""
        self._filter, self._kept, self.note = pattern, None, ""

    def resize(self, height: int) -> None:
        """Show pages of another height."""
        self.height, self._kept = max(1, height), None

    def with_numbers(self, wanted: bool) -> None:
        """Tell the lines' numbers or not."""
        self._lines = (self._lines or Tally()) if wanted else None

    def with_times(self, wanted: bool) -> None:
        """Tell when lines were printed or not."""
        self._with_times, self.note = wanted, ""

    def set_mark(self) -> None:
        """Begin a selection at the top of the page, or give one up."""
        self._mark = None if self._mark is not None else self._top
        self.note = "" if self._mark is None else "selection begins here"

    def selected(self, file: LogFile) -> bytes:
        """What is between the mark, or else the top of the page, and the page's end."""
        start = self._top if self._mark is None else min(self._mark, self._top)
        end = min(self._page_end, start + _MOST_SELECTED)
        self._mark = None
        if self._filter is not None:
            lines = file.matching(self._filter, start, 1 << 16, wanted=self._wanted)
            return b"\n".join(line.content for line in lines if line.end <= end)
        return b"".join(file.blocks(start, end))

    def _tail(self, file: LogFile) -> list[LogLine]:
        if self._filter is None:
            return file.backward(file.end, self.height)
        if self._kept is None or self._kept_to > file.end:
            self._kept = file.matching_back(self._filter, file.end, self.height, wanted=self._wanted)
        else:
            new = file.matching(self._filter, self._kept_to, _MOST_NEW, wanted=self._wanted)
            self._kept = [line for line in self._kept if line.start < self._kept_to] + new
            self._kept = self._kept[-self.height :]
        # The last line may not be whole yet, so it is looked at again.
        self._kept_to = file.line_start(file.end - 1) if file.end else 0
        shown = self._kept
        if not self._wanted():
            self._kept = None
        return shown

    def _forward(self, file: LogFile, position: int, count: int) -> list[LogLine]:
        if self._filter is None:
            return file.forward(position, count)
        return file.matching(self._filter, position, count, wanted=self._wanted)

    def _backward(self, file: LogFile, position: int, count: int) -> list[LogLine]:
        if self._filter is None:
            return file.backward(position, count)
        return file.matching_back(self._filter, position, count, wanted=self._wanted)

    def _detach(self, file: LogFile) -> None:
        if self._following:
            self._following, self._behind, self._counted_to = False, 0, file.end

    def _search_from(self, file: LogFile, *, back: bool) -> int:
        """From the last hit if it is on the page, else from the page: whoever went elsewhere searches there."""
        if self._following:
            return file.end
        if self._hit is not None and self._top <= self._hit < self._page_end:
            return self._hit if back else file.forward(self._hit, 1)[0].end
        return self._top

    def _hit_number(self, file: LogFile) -> int | None:
        if self._hit is None or self._hits is None:
            return None
        before = self._hits.before(file, self._hit)
        return None if before is None else before + 1

    def _numbers(self, file: LogFile, lines: list[LogLine]) -> tuple[int | None, ...]:
        if self._lines is None:
            return ()
        if self._filter is None and lines:
            first = self._lines.before(file, lines[0].start)
            return tuple(None if first is None else first + place for place in range(1, len(lines) + 1))
        counts = [self._lines.before(file, line.start) for line in lines]
        return tuple(None if count is None else count + 1 for count in counts)

    def _moments(self, file: LogFile, lines: list[LogLine]) -> tuple[float | None, ...]:
        if not self._with_times:
            return ()
        times = self._read_times(file)
        places = [bisect_right(times.offsets, line.start) - 1 for line in lines]
        return tuple(times.moments[place] if place >= 0 else None for place in places)

    def _read_times(self, file: LogFile) -> LogTimes:
        if self._times is None or self._times_to != file.end:
            self._times, self._times_to = file.times(), file.end
        return self._times
