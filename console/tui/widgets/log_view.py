"""Shows a log that may be of any size: a page at a time, following its end, searching, hostile bytes made visible."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from console.logs.logbytes import one_part
from console.logs.logfile import LogFile
from console.logs.logpage import Page
from console.logs.logpager import ERRORS, LogPager
from console.logs.merged import MergedLog, Source
from console.tui.keys import bindings
from console.tui.log_drawing import WIDEST, LogDrawing
from console.tui.log_status import log_status
from console.tui.painting import Pieces
from console.tui.syntax import Highlighter

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_WHEEL_LINES = 3

Asking = Literal["search", "filter", "time", "save"]


class LogView(Widget, can_focus=True, inherit_bindings=False):
    """A pager; it opens at the end and follows."""

    DEFAULT_CSS = "LogView { height: 1fr; width: 1fr; }"
    BINDINGS = bindings("log")
    app: ConsoleApp

    @dataclass
    class Paged(Message):
        """Another page is there."""

        page: Page
        path: Path

        def can_replace(self, message: Message) -> bool:
            """Only the newest page is worth drawing."""
            return isinstance(message, LogView.Paged) and message.path == self.path

    @dataclass
    class Asked(Message):
        """Something is to be typed."""

        what: Asking

    @dataclass
    class CopyWanted(Message):
        """What is selected is to be copied."""

    @dataclass
    class PagerWanted(Message):
        """The log is to be opened in the operator's own pager."""

        path: Path

    @dataclass
    class Told(Message):
        """Where the view is has changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._path: Path | None = None
        self._pager: LogPager | None = None
        self._page = Page()
        self._wrap = False
        self._left = 0
        self._numbers = False
        self._times = False
        self._pattern: re.Pattern[bytes] | None = None
        self._highlighter: Highlighter | None = None
        self._rows: tuple[Strip, ...] = ()

    def show(self, path: Path | None) -> None:
        """Show a log from its end, or none."""
        if path != self._path:
            self._open(path, None, LogFile)

    def show_file(self, path: Path, highlighter: Highlighter | None) -> None:
        """Show a file that is no log, from its beginning."""
        self._open(path, highlighter, partial(LogFile, parts_of=one_part))
        self.action_top()

    def show_merged(self, sources: tuple[Source, ...]) -> None:
        """Show several logs as one, with their times."""
        self._times = True
        self._open(Path("merged"), None, lambda _path: MergedLog(sources))

    def _open(
        self,
        path: Path | None,
        highlighter: Highlighter | None,
        opening: Callable[[Path], LogFile],
    ) -> None:
        self._stop()
        self._path, self._page, self._left, self._highlighter = path, Page(), 0, highlighter
        if path is not None and self.is_attached:
            height = max(1, self.size.height)
            self._pager = LogPager(path, self._deliver, height=height, opening=opening)
            self._pager.with_numbers(self._numbers)
            self._pager.with_times(self._times)
            self._pager.start()
        self._draw()

    def search(self, text: str) -> str:
        """Look for a regular expression from here on; returns what is wrong with it, if anything."""
        pattern, wrong = _compiled(text)
        if pattern is not None and self._pager is not None:
            self._pattern = pattern
            self._pager.search(pattern)
        return wrong

    def only_lines_with(self, text: str) -> str:
        """Leave out lines without a regular expression, none at all without one; returns what is wrong with it."""
        pattern, wrong = _compiled(text)
        if self._pager is not None and not wrong:
            self._pattern = pattern or self._pattern
            self._pager.only_lines_with(pattern)
        return wrong

    def to_moment(self, text: str) -> None:
        """Go to what was printed at a moment."""
        if self._pager is not None:
            self._times = True
            self._pager.to_moment(text)

    def take_selection(self, take: Callable[[bytes], None]) -> None:
        """Hand over what is selected, in the pager's thread."""
        if self._pager is not None:
            self._pager.take_selection(take)

    def status(self, width: int) -> Pieces:
        """Where the view is, and whether it follows."""
        page = self._page if self._path is not None else Page()
        return log_status(page, self._left, width, self.app.signs, wrap=self._wrap)

    def on_unmount(self) -> None:
        """Let go of the log."""
        self._stop()

    def on_resize(self, event: events.Resize) -> None:
        """Ask for pages of the new height."""
        if self._pager is not None:
            self._pager.resize(max(1, event.size.height))
        self._draw()

    def on_log_view_paged(self, message: Paged) -> None:
        """Draw a page."""
        message.stop()
        if message.path == self._path:
            self._page = message.page
            self._draw()

    def on_mouse_scroll_down(self) -> None:
        """Go down."""
        self.action_scroll_lines(_WHEEL_LINES)

    def on_mouse_scroll_up(self) -> None:
        """Go up."""
        self.action_scroll_lines(-_WHEEL_LINES)

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        return self._rows[y] if y < len(self._rows) else Strip.blank(self.size.width, self.app.palette.base)

    def action_scroll_lines(self, lines: int) -> None:
        """Move by lines."""
        if self._pager is not None:
            self._pager.move(lines)

    def action_scroll_pages(self, pages: int) -> None:
        """Move by pages."""
        self.action_scroll_lines(pages * max(1, self.size.height - 1))

    def action_top(self) -> None:
        """Go to the beginning."""
        if self._pager is not None:
            self._pager.top()

    def action_bottom(self) -> None:
        """Go to the end and follow."""
        if self._pager is not None:
            self._pager.follow()

    def action_sideways(self, cells: int) -> None:
        """Look further to the right or left of long lines."""
        if not self._wrap:
            self._left = min(max(0, self._left + cells), WIDEST - 20)
            self._draw()

    def action_wrap(self) -> None:
        """Wrap long lines or cut them."""
        self._wrap, self._left = not self._wrap, 0
        self._draw()

    def action_numbers(self) -> None:
        """Tell the lines' numbers or not."""
        self._numbers = not self._numbers
        if self._pager is not None:
            self._pager.with_numbers(self._numbers)

    def action_times(self) -> None:
        """Tell when lines were printed or not."""
        self._times = not self._times
        if self._pager is not None:
            self._pager.with_times(self._times)

    def action_mark(self) -> None:
        """Begin a selection here, or give one up."""
        if self._pager is not None:
            self._pager.mark()

    def action_ask(self, what: Asking) -> None:
        """Let something be typed."""
        self.post_message(self.Asked(what))

    def action_copy(self) -> None:
        """Let what is selected be copied."""
        self.post_message(self.CopyWanted())

    def action_pager(self) -> None:
        """Open the log in the operator's own pager."""
        if self._path is not None:
            self.post_message(self.PagerWanted(self._path))

    def action_hit(self, direction: int) -> None:
        """Go to the next hit."""
        if self._pager is not None:
            self._pager.search(self._pattern, back=direction < 0)

    def action_error(self, direction: int) -> None:
        """Go to the next line that looks like an error."""
        self._pattern = ERRORS
        self.action_hit(direction)

    def _deliver(self, page: Page) -> None:
        if self._path is not None and self.app.is_running:
            self.post_message(self.Paged(page, self._path))

    def _stop(self) -> None:
        if self._pager is not None:
            self._pager.stop()
        self._pager = None

    def _draw(self) -> None:
        width, height = self.size
        if not width or not height:
            return
        drawing = LogDrawing(
            self.app.palette, self.app.signs, self._wrap, self._left, self._pattern, self._highlighter
        )
        rows = drawing.rows(self._page, width)
        before, shown = self._rows, rows[-height:] if self._page.following else rows[:height]
        self._rows = tuple(shown)
        if before != self._rows:
            self.refresh()
        self.post_message(self.Told())


def _compiled(text: str) -> tuple[re.Pattern[bytes] | None, str]:
    """The expression that is meant, and what is wrong with it; small letters match large ones too."""
    flags = re.MULTILINE | (0 if any(letter.isupper() for letter in text) else re.IGNORECASE)
    try:
        return (re.compile(text.encode(), flags) if text else None), ""
    except re.error as error:
        return None, f"that is no regular expression: {error}"
