"""Paging through a log for a screen: a cursor that moves, searches and filters, and the thread that runs it."""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from mlebench_console.console.logs.reader import LogFile, LogLine, LogName
from mlebench_console.console.logs.search import LineCount, MatchingLines, Pattern, count_lines, search
from mlebench_console.foundation.problems import UsageProblem

log = logging.getLogger(__name__)

# The shortest interval between two pages of a growing log.
LOOK_EVERY_SECONDS = 0.25
# The average rate at which a growing log may send output to the terminal: nobody reads faster, and links are slow.
_BYTES_PER_SECOND = 3500
_LONGEST_PAUSE_SECONDS = 2.0
# The width assumed for a terminal, and the bytes per line for moving the cursor and setting colours.
_SEEN_OF_LINE = 120
_AROUND_LINE = 40
_COUNT_SECONDS = 0.02
# Searches through more bytes may take long, so a message says that a search is running.
_LARGE = 1 << 28
# The number of lines shown above a hit.
_CONTEXT = 5
# The number of filtered lines kept in memory while the log grows.
_MOST_NEW = 2000
# Selections are read into memory; of larger ones only the beginning is used.
_MOST_SELECTED = 32 << 20
_SINCE_BEGIN = re.compile(r"\+(?:(?P<hours>\d+)[:h])?(?P<minutes>\d+)m?")
_TIME_OF_DAY = re.compile(r"(?P<hours>\d{1,2}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}))?")
_DAY = 86400.0


@dataclass(frozen=True)
class Page:
    """The lines to show, and their position in the log.

    Attributes:
        following: the page stays at the end while the log grows.
        behind: the number of lines added since following stopped.
        share: the position of the page's end in the log, between 0 and 1.
        hit: the start of the line that a search found.
        hits: the number of lines with a match, as far as counted.
        hit_number: the number of the hit among them.
        counting: counting is not finished.
        filtered: only lines with a match are shown.
        mark: the start of a selection.
        selected: the number of lines in the selection.
        numbers: the lines' numbers, if shown and known.
        moments: when the lines were printed, if shown and known.
        names: each line's log, where there are several.
        note: a message about the result of the last command.
    """

    lines: tuple[LogLine, ...] = ()
    following: bool = True
    behind: int = 0
    share: float = 1.0
    size: int = 0
    hit: int | None = None
    hits: int | None = None
    hit_number: int | None = None
    counting: bool = False
    filtered: bool = False
    mark: int | None = None
    selected: int = 0
    numbers: tuple[int | None, ...] = ()
    moments: tuple[float | None, ...] = ()
    names: tuple[LogName | None, ...] = ()
    note: str = ""


class LogCursor:
    """A position in a log, and the page there.

    Attributes:
        file: the log, as of its last refresh.
        height: lines of a page.
        columns: the width to which long lines are wrapped; None if they are cut.
    """

    def __init__(self, file: LogFile, height: int, wanted: Callable[[], bool]) -> None:
        """Start at the end, following.

        Args:
            file: the log.
            height: lines of a page.
            wanted: returns whether a long search should go on.
        """
        self.file = file
        self.height = height
        self.columns: int | None = None
        self._note = ""
        self._wanted = wanted
        self._following = True
        self._top = 0
        self._counted_to = 0
        self._behind = 0
        self._pattern: Pattern | None = None
        self._hit: int | None = None
        self._hits: LineCount | None = None
        self._filter: Pattern | None = None
        self._kept: list[LogLine] | None = None
        self._kept_to = 0
        self._lines: LineCount | None = None
        self._with_times = False
        self._mark: int | None = None
        self._page_end = 0
        self._restarts = file.restarts

    def page(self) -> Page:
        """Return the current page."""
        file = self.file
        if file.restarts != self._restarts:
            self._begin_anew()
        if self._following:
            lines = self._tail()
            self._top = lines[0].start if lines else file.begin
            self._behind, self._counted_to = 0, file.end
        else:
            # A restarted log may be shorter.
            self._top = min(max(self._top, file.begin), file.end)
            lines = self._shown.forward(self._top, self.height)
            self._behind += file.count_lines(self._counted_to, file.end)
            self._counted_to = max(self._counted_to, file.end)
        length = file.end - file.begin
        self._page_end = lines[-1].end if lines else file.end
        return Page(
            lines=tuple(lines),
            following=self._following,
            behind=self._behind,
            share=(self._page_end - file.begin) / length if length else 1.0,
            size=file.end,
            hit=self._hit,
            hits=self._hits.count if self._hits is not None else None,
            hit_number=self._hit_number(),
            counting=self.is_counting(),
            filtered=self._filter is not None,
            mark=self._mark,
            selected=self._selected(),
            numbers=self._numbers(lines),
            moments=self._moments(lines),
            names=tuple(file.name_at(line.start) for line in lines),
            note=self._note,
        )

    def is_counting(self) -> bool:
        """Return whether counting is not finished."""
        return any(count is not None and count.is_behind(self.file) for count in (self._hits, self._lines))

    def count_on(self, seconds: float) -> None:
        """Continue counting for about this many seconds."""
        for count in (self._hits, self._lines):
            if count is not None and count.is_behind(self.file):
                count.advance(self.file, seconds)
                return

    def move(self, lines: int) -> None:
        """Go down by lines, or up by a negative number."""
        self._note = ""
        if lines < 0:
            before = self._shown.backward(self._top, -lines)
            if before:
                self._stop_following()
                self._top = before[0].start
        elif not self._following:
            ahead = self._shown.forward(self._top, lines + self.height)
            if len(ahead) < lines + self.height:
                self.to_end()
            else:
                self._top = ahead[lines].start

    def to_begin(self) -> None:
        """Go to the beginning."""
        self._note = ""
        self._stop_following()
        self._top = self.file.begin

    def to_line(self, number: int) -> None:
        """Go to a line, counted from 1, with a few lines above it; to the end if there are fewer lines."""
        self._stop_following()
        lines = self._shown.forward(self.file.begin, number)
        if lines:
            self._top = self._with_context(lines[-1].start)

    def to_end(self) -> None:
        """Go to the end and follow."""
        self._following, self._note = True, ""

    def to_moment(self, text: str) -> None:
        """Go to the output of a time that was typed."""
        span = self.file.time_span()
        if span is None:
            self._note = "this log has no times"
            return
        try:
            moment = read_moment(text, *span)
        except UsageProblem as problem:
            self._note = problem.in_one_line()
            return
        self._note = ""
        self._stop_following()
        self._with_times = True
        self._top = self.file.line_start(
            max(self.file.begin, min(self.file.position_at(moment), self.file.end - 1))
        )
        if len(self._shown.forward(self._top, self.height)) < self.height:
            # Show a full page rather than one with few lines at its top.
            self.to_end()
        if moment > span[1]:
            self._note = "that is after the last line"

    def search(self, pattern: Pattern | None, *, back: bool = False) -> None:
        """Go to the next line with a match of a pattern; without one, of the last pattern."""
        if pattern is not None and pattern != self._pattern:
            self._pattern, self._hits = pattern, LineCount(pattern)
        if self._pattern is None:
            self._note = "nothing to search for yet: type /"
            return
        file, begin, note = self.file, self._search_from(back=back), ""
        found = search(file, self._pattern, begin, back=back, wanted=self._wanted)
        if found is None and self._wanted():
            # Wrap around: search the rest of the log from its other end.
            other = file.end if back else file.begin
            found = search(file, self._pattern, other, back=back, wanted=self._wanted, until=begin)
            note = f"from the {'end' if back else 'beginning'} again"
        if found is None:
            self._note = "no hit" if self._wanted() else "search stopped"
            return
        self._note = note
        self._stop_following()
        self._hit = found.start
        self._top = self._with_context(found.start)

    def only_lines_with(self, pattern: Pattern | None) -> None:
        """Show only lines with a match; None shows all lines again."""
        self._filter, self._kept, self._note = pattern, None, ""
        self._pattern = pattern or self._pattern
        self._hits = None if pattern is None else LineCount(pattern)
        self._hit = None

    def resize(self, height: int, columns: int | None = None) -> None:
        """Set the height of pages and the width to which long lines are wrapped; None cuts them."""
        self.height, self.columns, self._kept = max(1, height), columns, None

    def with_numbers(self, wanted: bool) -> None:
        """Show or hide line numbers."""
        self._lines = (self._lines or LineCount()) if wanted else None

    def with_times(self, wanted: bool) -> None:
        """Show or hide the times of lines."""
        self._with_times, self._note = wanted, ""

    def toggle_mark(self) -> None:
        """Start a selection at the top of the page, or cancel it."""
        self._mark = None if self._mark is not None else self._top
        self._note = "" if self._mark is None else "selection begins here"

    def _selected(self) -> int:
        if self._mark is None:
            return 0
        start = min(self._mark, self._top)
        return count_lines(self.file, start, min(self._page_end, start + _MOST_SELECTED), self._filter)

    def take_selection(self, most: int = _MOST_SELECTED) -> tuple[bytes, bool]:
        """Return the selection, or without one the page, and whether it was cut; removes the mark.

        Args:
            most: the greatest number of bytes to return.
        """
        start = self._top if self._mark is None else min(self._mark, self._top)
        end, self._mark = self._page_end, None
        if self._filter is None:
            blocks = self.file.blocks(start, min(end, start + most + 1))
            content = b"".join(block for _position, block in blocks)
        else:
            found = bytearray()
            for line in MatchingLines(self.file, self._filter, self._wanted).lines(start, end):
                found += line.content + b"\n"
                if len(found) > most + 1:
                    break
            content = bytes(found).removesuffix(b"\n")
        return content[:most], len(content) > most

    def _tail(self) -> list[LogLine]:
        file = self.file
        if self._filter is None:
            return file.backward(file.end, self.height)
        if self._kept is None or self._kept_to > file.end:
            self._kept = self._shown.backward(file.end, self.height)
        else:
            new = self._shown.forward(self._kept_to, _MOST_NEW)
            self._kept = [line for line in self._kept if line.start < self._kept_to] + new
            self._kept = self._kept[-self.height :]
        # The last line may be incomplete, so it is searched again next time.
        self._kept_to = file.line_start(file.end - 1) if file.end else 0
        shown = self._kept
        if not self._wanted():
            self._kept = None
        return shown

    @property
    def _shown(self) -> LogFile | MatchingLines:
        """The lines that are shown: all, or those with a match."""
        return self.file if self._filter is None else MatchingLines(self.file, self._filter, self._wanted)

    def _begin_anew(self) -> None:
        """Forget all positions, which are invalid after a restart of the log."""
        self._restarts = self.file.restarts
        self._hit = self._mark = self._kept = None
        self._hits = None if self._hits is None else LineCount(self._pattern)
        self._lines = None if self._lines is None else LineCount()
        self._counted_to = min(self._counted_to, self.file.end)

    def _with_context(self, position: int) -> int:
        """Return the start of the context above a line, with only as many lines as leave room for wrapped lines."""
        room = min(_CONTEXT, self.height // 3)
        for line in reversed(self._shown.backward(position, room)):
            room -= -(-max(1, len(line.content)) // self.columns) if self.columns else 1
            if room < 0:
                break
            position = line.start
        return position

    def _stop_following(self) -> None:
        if self._following:
            self._following, self._behind, self._counted_to = False, 0, self.file.end

    def _search_from(self, *, back: bool) -> int:
        """Return where a search starts: at the last hit if it is on the page, else at the page's top."""
        if self._following:
            return self.file.end
        if self._hit is not None and self._top <= self._hit < self._page_end:
            return self._hit if back else self.file.forward(self._hit, 1)[0].end
        return self._top

    def _hit_number(self) -> int | None:
        if self._hit is None or self._hits is None:
            return None
        before = self._hits.before(self.file, self._hit)
        return None if before is None else before + 1

    def _numbers(self, lines: list[LogLine]) -> tuple[int | None, ...]:
        if self._lines is None:
            return ()
        if self._filter is None and lines:
            first = self._lines.before(self.file, lines[0].start)
            return tuple(None if first is None else first + place for place in range(1, len(lines) + 1))
        counts = [self._lines.before(self.file, line.start) for line in lines]
        return tuple(None if count is None else count + 1 for count in counts)

    def _moments(self, lines: list[LogLine]) -> tuple[float | None, ...]:
        if not self._with_times:
            return ()
        return tuple(self.file.moments_of([line.start for line in lines]))


def read_moment(text: str, begin: float, end: float) -> float:
    """Parse a typed time: `14:05` is the last such time of day before the end, `+2:30` counts from begin.

    Raises:
        UsageProblem: it is neither.
    """
    text = text.strip()
    if found := _SINCE_BEGIN.fullmatch(text):
        return begin + int(found["hours"] or 0) * 3600 + int(found["minutes"]) * 60
    if (found := _TIME_OF_DAY.fullmatch(text)) and int(found["hours"]) < 24 and int(found["minutes"]) < 60:
        day = time.localtime(end)
        clock = (int(found["hours"]), int(found["minutes"]), int(found["seconds"] or 0))
        moment = time.mktime((day.tm_year, day.tm_mon, day.tm_mday, *clock, 0, 0, -1))
        return moment if moment <= end else moment - _DAY
    raise UsageProblem(f"'{text}' is not a time", "", "Type 14:05 for a time of day, or +2:30 into the run.")


@dataclass(frozen=True)
class _Command:
    action: Callable[[LogCursor], None]
    number: int
    long: bool


class LogPager:
    """A thread with a cursor in a log: `run` returns at once, and `deliver` is called with pages.

    It is a daemon thread rather than a Textual worker, because the program waits for workers when it exits, and a read
    from a network file system may hang.
    """

    def __init__(
        self,
        file: LogFile,
        deliver: Callable[[Page], None],
        *,
        height: int,
    ) -> None:
        self._file = file
        self._deliver = deliver
        self._commands: queue.SimpleQueue[_Command | None] = queue.SimpleQueue()
        self._cursor = LogCursor(file, height, self._still_wanted)
        self._shown: Page | None = None
        self._shown_at = float("-inf")
        self._pause = 0.0
        self._newest = 0
        self._current = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="log-pager", daemon=True)

    def start(self) -> None:
        """Start the thread, at the end of the log."""
        self._thread.start()

    def stop(self) -> None:
        """Close the log; does not wait for a read that hangs."""
        self._ended.set()
        self._commands.put(None)

    def run(self, action: Callable[[LogCursor], None], *, long: bool = False, moves: bool = True) -> None:
        """Run an action on the cursor in the pager's thread, then deliver the new page.

        Args:
            action: takes the cursor.
            long: the action is a search, which may take long.
            moves: the action changes the position, which cancels a running search.
        """
        self._newest += moves
        self._commands.put(_Command(action, self._newest, long))

    def is_final(self, page: Page) -> bool:
        """Return whether a page is the result of the last command, with counting finished."""
        done = self._commands.empty() and self._current == self._newest
        return done and page == self._shown and not page.counting

    def _work(self) -> None:
        while not self._ended.is_set():
            command = self._next()
            if self._ended.is_set():
                break
            try:
                self._step(command)
            except OSError as error:
                self._file.close()
                self._show(Page(note=f"the log can't be read: {error.strerror or error}"))
            except Exception:
                # The page shows the problem, and the next read may succeed; the traceback goes to the log.
                log.exception("paging %s", self._file.path)
                self._file.close()
                self._show(Page(note="the log can't be shown; see console.log"))
        self._file.close()

    def _step(self, command: _Command | None) -> None:
        file = self._file
        before = file.end
        file.refresh()
        counting = self._cursor.is_counting()
        if command is not None:
            self._current = command.number
            if command.long and file.end > _LARGE and self._shown is not None:
                self._show(replace(self._shown, note="searching"))
            command.action(self._cursor)
        elif counting:
            self._cursor.count_on(_COUNT_SECONDS)
            pause = max(LOOK_EVERY_SECONDS, self._pause)
            if self._cursor.is_counting() and time.monotonic() - self._shown_at < pause:
                return
        elif self._shown is not None and (
            file.end == before == self._shown.size or time.monotonic() - self._shown_at < self._pause
        ):
            return
        page = self._cursor.page()
        self._pause = _pause_after(self._shown, page)
        self._show(page)

    def _next(self) -> _Command | None:
        """Wait for a command or the next refresh; only very briefly while counting."""
        try:
            return self._commands.get(timeout=0.001 if self._cursor.is_counting() else LOOK_EVERY_SECONDS)
        except queue.Empty:
            return None

    def _show(self, page: Page) -> None:
        self._shown_at = time.monotonic()
        if page != self._shown:
            self._shown = page
            self._deliver(page)

    def _still_wanted(self) -> bool:
        return self._current == self._newest and not self._ended.is_set()


def _pause_after(before: Page | None, page: Page) -> float:
    """Return how long a page must stay, unless a key is pressed, given the bytes needed to draw it over another."""
    shown = () if before is None else before.lines
    cost = sum(
        min(len(line.content), _SEEN_OF_LINE) + _AROUND_LINE
        for place, line in enumerate(page.lines)
        if place >= len(shown) or shown[place] != line
    )
    return min(cost / _BYTES_PER_SECOND, _LONGEST_PAUSE_SECONDS)
