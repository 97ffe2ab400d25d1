"""Paging through a log in a thread of its own: it follows the end, moves, searches, and hands over pages."""

from __future__ import annotations

import logging
import queue
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.model.logfile import LogFile, LogLine

log = logging.getLogger(__name__)

# At most this often a growing log is shown anew, however fast it grows.
LOOK_EVERY_SECONDS = 0.25
ERRORS = re.compile(
    rb"\w(?:Error|Exception)\b"
    rb"|(?i:\b(?:error|exception|traceback|fatal|failed|out of memory|oom|killed|segmentation fault)\b)"
)


@dataclass(frozen=True)
class Page:
    """What is to be shown, and where in the log that is.

    Attributes:
        following: the page stays at the end while the log grows.
        behind: lines that were added below since following stopped.
        share: how far down the page's end is, between 0 and 1.
        hit: where the line begins that a search found.
        note: what came of the last command, for people.
    """

    lines: tuple[LogLine, ...] = ()
    following: bool = True
    behind: int = 0
    share: float = 1.0
    size: int = 0
    exists: bool = False
    hit: int | None = None
    note: str = ""


@dataclass(frozen=True)
class _Command:
    does: Callable[[], None]


class LogPager:
    """Keeps a place in a log; every method returns at once, pages come by `deliver` from its thread."""

    def __init__(self, path: Path, deliver: Callable[[Page], None], *, height: int = 50) -> None:
        self._path = path
        self._deliver = deliver
        self._height = height
        self._commands: queue.SimpleQueue[_Command | None] = queue.SimpleQueue()
        self._file: LogFile | None = None
        self._following = True
        self._top = 0
        self._counted_to = 0
        self._behind = 0
        self._pattern: re.Pattern[bytes] | None = None
        self._hit: int | None = None
        self._note = ""
        self._shown: Page | None = None
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
        self._put(lambda: self._set_height(height))

    def move(self, lines: int) -> None:
        """Go down by lines, or up by a negative number."""
        self._put(lambda: self._move(lines))

    def top(self) -> None:
        """Go to the beginning."""
        self._put(self._to_top)

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._put(self._to_end)

    def search(self, pattern: re.Pattern[bytes] | None, *, back: bool = False) -> None:
        """Go to the next line with a pattern, or with the last one searched for."""
        self._put(lambda: self._search(pattern, back=back))

    def _put(self, does: Callable[[], None]) -> None:
        self._commands.put(_Command(does))

    def _work(self) -> None:
        while not self._ended.is_set():
            try:
                command = self._commands.get(timeout=LOOK_EVERY_SECONDS)
                moved = command is not None
            except queue.Empty:
                command, moved = None, False
            if self._ended.is_set():
                break
            try:
                grown = self._refresh()
                if command is not None:
                    command.does()
                if moved or grown or self._shown is None:
                    self._show()
            except OSError as error:
                self._let_go()
                self._tell(Page(note=f"the log can't be read: {error.strerror or error}"))
            except Exception:
                # The pane says so and the next look may succeed; the log keeps the traceback.
                log.exception("paging %s", self._path)
                self._let_go()
                self._tell(Page(note="the log can't be shown; see console.log"))
        self._let_go()

    def _refresh(self) -> bool:
        if self._file is None:
            self._file = LogFile(self._path)
            self._counted_to = self._file.end
            return True
        return self._file.refresh()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _show(self) -> None:
        file = self._opened()
        if self._following:
            lines = file.backward(file.end, self._height)
            self._top = lines[0].start if lines else file.begin
            self._behind, self._counted_to = 0, file.end
        else:
            self._top = max(self._top, file.begin)
            lines = file.forward(self._top, self._height)
            self._behind += file.count_lines(self._counted_to, file.end)
            self._counted_to = max(self._counted_to, file.end)
        length = file.end - file.begin
        shown_to = (lines[-1].end if lines else file.end) - file.begin
        self._tell(
            Page(
                lines=tuple(lines),
                following=self._following,
                behind=self._behind,
                share=shown_to / length if length else 1.0,
                size=file.end,
                exists=file.end > 0,
                hit=self._hit,
                note=self._note,
            )
        )

    def _tell(self, page: Page) -> None:
        if page != self._shown:
            self._shown = page
            self._deliver(page)

    def _opened(self) -> LogFile:
        assert self._file is not None  # every command comes after a refresh
        return self._file

    def _set_height(self, height: int) -> None:
        self._height = max(1, height)

    def _move(self, lines: int) -> None:
        file, self._note = self._opened(), ""
        if lines < 0:
            before = file.backward(self._top, -lines)
            if before:
                self._detach()
                self._top = before[0].start
        elif not self._following:
            ahead = file.forward(self._top, lines + self._height)
            if len(ahead) < lines + self._height:
                self._to_end()
            else:
                self._top = ahead[lines].start

    def _to_top(self) -> None:
        self._note = ""
        self._detach()
        self._top = self._opened().begin

    def _to_end(self) -> None:
        self._following, self._note = True, ""

    def _detach(self) -> None:
        if self._following:
            self._following, self._behind, self._counted_to = False, 0, self._opened().end

    def _search(self, pattern: re.Pattern[bytes] | None, *, back: bool) -> None:
        file = self._opened()
        self._pattern = pattern or self._pattern
        if self._pattern is None:
            self._note = "nothing to search for yet: / begins"
            return
        start = self._search_from(back=back)
        if back:
            found = file.search_back(self._pattern, start, wanted=self._still_wanted)
        else:
            found = file.search(self._pattern, start, wanted=self._still_wanted)
        if found is None:
            stopped = not self._still_wanted()
            self._note = "search stopped" if stopped else f"no {'earlier' if back else 'further'} hit"
            return
        self._note = ""
        self._detach()
        self._hit = found.start
        # A few lines above the hit tell what led to it.
        above = file.backward(found.start, min(5, self._height // 3))
        self._top = above[0].start if above else found.start

    def _search_from(self, *, back: bool) -> int:
        file = self._opened()
        if self._hit is not None and not self._following:
            return self._hit if back else file.forward(self._hit, 1)[0].end
        return file.end if back or self._following else self._top

    def _still_wanted(self) -> bool:
        return self._commands.empty() and not self._ended.is_set()
