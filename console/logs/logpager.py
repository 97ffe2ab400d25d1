"""Paging through a log in a thread of its own: it follows the end, moves, searches, and hands over pages."""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from console.logs.logfile import LogFile
from console.logs.logpage import Page
from console.logs.logplace import LogPlace

log = logging.getLogger(__name__)

__all__ = ["ERRORS", "LogPager", "Page"]

# At most this often a growing log is shown anew, however fast it grows.
LOOK_EVERY_SECONDS = 0.25
# What a log that grows by itself may send to the terminal on average: nobody reads faster, and links are slow.
_BYTES_PER_SECOND = 3500
_LONGEST_PAUSE_SECONDS = 2.0
# Of a line, what a terminal is wide; and what moving the cursor and setting colours adds.
_SEEN_OF_LINE = 120
_AROUND_LINE = 40
_COUNT_SECONDS = 0.02
# A search through more than this may take long enough to say so.
_LARGE = 1 << 28
ERRORS = re.compile(
    rb"\w(?:Error|Exception)\b"
    rb"|(?i:\b(?:error|exception|traceback|fatal|failed|out of memory|oom|killed|segmentation fault)\b)"
)


@dataclass(frozen=True)
class _Command:
    does: Callable[[LogFile], None]
    number: int
    long: bool = False


class LogPager:
    """Keeps a place in a log; every method returns at once, pages come by `deliver` from its thread."""

    def __init__(
        self,
        path: Path,
        deliver: Callable[[Page], None],
        *,
        height: int = 50,
        opening: Callable[[Path], LogFile] = LogFile,
    ) -> None:
        self._path = path
        self._opening = opening
        self._deliver = deliver
        self._commands: queue.SimpleQueue[_Command | None] = queue.SimpleQueue()
        self._file: LogFile | None = None
        self._place = LogPlace(height, self._still_wanted)
        self._shown: Page | None = None
        self._told_at = float("-inf")
        self._pause = 0.0
        self._newest = 0
        self._current = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="log-pager", daemon=True)

    def start(self) -> None:
        """Begin, at the end of the log."""
        self._thread.start()

    def stop(self) -> None:
        """Let go of the log; does not wait for a read that hangs."""
        self._ended.set()
        self._commands.put(None)

    def resize(self, height: int) -> None:
        """Show pages of another height."""
        self._put(lambda _file: self._place.resize(height), moves=False)

    def move(self, lines: int) -> None:
        """Go down by lines, or up by a negative number."""
        self._put(lambda file: self._place.move(file, lines))

    def top(self) -> None:
        """Go to the beginning."""
        self._put(self._place.to_top)

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._put(lambda _file: self._place.to_end())

    def to_moment(self, text: str) -> None:
        """Go to what was printed at a moment that a person typed."""
        self._put(lambda file: self._place.to_moment(file, text))

    def search(self, pattern: re.Pattern[bytes] | None, *, back: bool = False) -> None:
        """Go to the next line with a pattern, or with the last one searched for."""
        self._put(lambda file: self._place.search(file, pattern, back=back), long=True)

    def only_lines_with(self, pattern: re.Pattern[bytes] | None) -> None:
        """Leave out all lines without a pattern; None shows them all again."""
        self._put(lambda _file: self._place.only_lines_with(pattern), long=True)

    def with_numbers(self, wanted: bool) -> None:
        """Tell the lines' numbers or not."""
        self._put(lambda _file: self._place.with_numbers(wanted), moves=False)

    def with_times(self, wanted: bool) -> None:
        """Tell when lines were printed or not."""
        self._put(lambda _file: self._place.with_times(wanted), moves=False)

    def mark(self) -> None:
        """Begin a selection at the top of the page, or give one up."""
        self._put(lambda _file: self._place.set_mark(), moves=False)

    def take_selection(self, take: Callable[[bytes], None]) -> None:
        """Hand over, in the pager's thread, what is between the mark or the page's top and the page's end."""
        self._put(lambda file: take(self._place.selected(file)), moves=False)

    def _put(self, does: Callable[[LogFile], None], *, long: bool = False, moves: bool = True) -> None:
        # Where somebody goes elsewhere, a search that is under way is no longer wanted; a new size changes nothing.
        self._newest += moves
        self._commands.put(_Command(does, self._newest, long))

    def _work(self) -> None:
        while not self._ended.is_set():
            command = self._next()
            if self._ended.is_set():
                break
            try:
                self._step(command)
            except OSError as error:
                self._let_go()
                self._tell(Page(note=f"the log can't be read: {error.strerror or error}"))
            except Exception:
                # The pane says so and the next look may succeed; the log keeps the traceback.
                log.exception("paging %s", self._path)
                self._let_go()
                self._tell(Page(note="the log can't be shown; see console.log"))
        self._let_go()

    def _step(self, command: _Command | None) -> None:
        before = None if self._file is None else self._file.end
        file = self._refreshed()
        counting = self._place.is_counting(file)
        if command is not None:
            self._current = command.number
            if command.long and file.end > _LARGE and self._shown is not None:
                self._tell(replace(self._shown, note="searching"))
            command.does(file)
        elif counting:
            self._place.count_on(file, _COUNT_SECONDS)
            pause = max(LOOK_EVERY_SECONDS, self._pause)
            if self._place.is_counting(file) and time.monotonic() - self._told_at < pause:
                return
        elif self._shown is not None and (
            file.end == before == self._shown.size or time.monotonic() - self._told_at < self._pause
        ):
            return
        page = self._place.page(file)
        self._pause = _pause_after(self._shown, page)
        self._tell(page)

    def _next(self) -> _Command | None:
        """Wait for a command, or for the time to look again; while there is something to count, hardly."""
        counting = self._file is not None and self._place.is_counting(self._file)
        try:
            return self._commands.get(timeout=0.001 if counting else LOOK_EVERY_SECONDS)
        except queue.Empty:
            return None

    def _refreshed(self) -> LogFile:
        if self._file is None:
            self._file = self._opening(self._path)
        else:
            self._file.refresh()
        return self._file

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _tell(self, page: Page) -> None:
        self._told_at = time.monotonic()
        if page != self._shown:
            self._shown = page
            self._deliver(page)

    def _still_wanted(self) -> bool:
        return self._current == self._newest and not self._ended.is_set()


def _pause_after(before: Page | None, page: Page) -> float:
    """How long a page is to stay, unless a key is pressed, for what it costs to draw it over another."""
    shown = () if before is None else before.lines
    cost = sum(
        min(len(line.content), _SEEN_OF_LINE) + _AROUND_LINE
        for place, line in enumerate(page.lines)
        if place >= len(shown) or shown[place] != line
    )
    return min(cost / _BYTES_PER_SECOND, _LONGEST_PAUSE_SECONDS)
