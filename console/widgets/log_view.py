"""Shows a log that may be of any size: a page at a time, following its end, searching, hostile bytes made visible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from console.keys import bindings
from console.model import wording
from console.model.logpager import ERRORS, LogPager, Page
from console.painting import Piece, Pieces, foreign, span_segments, spread
from console.sanitize import spans

if TYPE_CHECKING:
    from console.app import ConsoleApp

# A line's first cells; the rest is counted in a mark and can be reached sideways.
_WIDEST = 4000
_WHEEL_LINES = 3


class LogView(Widget, can_focus=True, inherit_bindings=False):
    """A pager; it opens at the end and follows."""

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
    class SearchWanted(Message):
        """A search is to be typed."""

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
        self._pattern: re.Pattern[bytes] | None = None
        self._rows: tuple[Strip, ...] = ()

    def show(self, path: Path | None) -> None:
        """Show a log from its end, or none."""
        if path == self._path:
            return
        self._stop()
        self._path, self._page, self._left = path, Page(), 0
        if path is not None and self.is_attached:
            self._pager = LogPager(path, self._deliver, height=max(1, self.size.height))
            self._pager.start()
        self._draw()

    def search(self, text: str) -> str:
        """Look for a regular expression from here on; returns what is wrong with it, if anything."""
        flags = re.MULTILINE | (0 if any(letter.isupper() for letter in text) else re.IGNORECASE)
        try:
            self._pattern = re.compile(text.encode(), flags)
        except re.error as error:
            return f"that is no regular expression: {error}"
        if self._pager is not None and text:
            self._pager.search(self._pattern)
        return ""

    def status(self, width: int) -> Pieces:
        """Where the view is, and whether it follows."""
        page = self._page
        if self._path is None:
            return ((" nothing has been printed yet", "dim"),)
        left: Pieces = (
            ((" ", "text"), (foreign(page.note, max(10, width - 44)).rstrip(), "warn")) if page.note else ()
        )
        if not page.exists and not page.note:
            return ((" nothing has been printed yet", "dim"),)
        size: Piece = (f"{wording.size(page.size)}  ", "dim")
        wrap: Pieces = (("wrap  ", "dim"),) if self._wrap else ()
        aside: Pieces = ((f"from column {self._left + 1}  ", "dim"),) if self._left else ()
        if page.following:
            return spread(left, (*aside, *wrap, size, ("following ", "good")), width)
        new = f", +{wording.plural(page.behind, 'line')}" if page.behind else ""
        down = self.app.signs.down
        return spread(
            left,
            (*aside, *wrap, size, (f"{page.share:.0%}  ", "dim"), (f"paused{new} {down} ", "warn")),
            width,
        )

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
            self._left = min(max(0, self._left + cells), _WIDEST - 20)
            self._draw()

    def action_wrap(self) -> None:
        """Wrap long lines or cut them."""
        self._wrap, self._left = not self._wrap, 0
        self._draw()

    def action_search(self) -> None:
        """Let a search be typed."""
        self.post_message(self.SearchWanted())

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
        rows = [row for line in self._page.lines for row in self._rows_of(line.text, line.start, width)]
        before, shown = self._rows, rows[-height:] if self._page.following else rows[:height]
        self._rows = tuple(shown)
        if before != self._rows:
            self.refresh()
        self.post_message(self.Told())

    def _rows_of(self, text: str, start: int, width: int) -> Iterator[Strip]:
        base = self.app.palette.base
        text = text.removesuffix("\r")
        hit = self._pattern is not None and self._pattern.search(text.encode()) is not None
        sign = Segment(
            self.app.signs.cursor if start == self._page.hit else " ", base + self.app.palette.style("accent")
        )
        room = width - 1
        drawn = Strip(self._segments(text, room))
        if hit:
            drawn = drawn.apply_style(self.app.palette.style("strong"))
        if not self._wrap:
            part = drawn.crop(self._left, self._left + room) if self._left else drawn
            yield Strip([sign, *part]).adjust_cell_length(width, base)
            return
        for place in range(0, max(1, drawn.cell_length), room):
            part = drawn.crop(place, place + room)
            yield Strip([sign if not place else Segment(" ", base), *part]).adjust_cell_length(width, base)

    def _segments(self, text: str, room: int) -> list[Segment]:
        limit = _WIDEST if self._wrap or self._left else room
        segments = span_segments(spans(text, limit=limit), self.app.palette)
        if self._pattern is None:
            return segments
        return [piece for segment in segments for piece in self._with_hits(segment)]

    def _with_hits(self, segment: Segment) -> Iterator[Segment]:
        style = (segment.style or self.app.palette.base) + self.app.palette.style("hit")
        content, place = segment.text.encode(), 0
        assert self._pattern is not None  # asked only while something is searched for
        for found in self._pattern.finditer(content):
            if found.end() == found.start():
                continue
            yield Segment(content[place : found.start()].decode("utf-8", "replace"), segment.style)
            yield Segment(content[found.start() : found.end()].decode("utf-8", "replace"), style)
            place = found.end()
        yield Segment(content[place:].decode("utf-8", "replace"), segment.style)
