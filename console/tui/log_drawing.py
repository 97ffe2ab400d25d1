"""How a page of a log, or of any file, is drawn: margins, colours, hits, wrapped or cut lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from console import wording
from console.logs.logpage import Page
from console.sanitize import plain, spans
from console.tui.painting import fit, span_segments
from console.tui.syntax import Highlighter
from console.tui.theme import Palette, Role, Signs

# A line's first cells; the rest is counted in a mark and can be reached sideways.
WIDEST = 4000
# What tells the lines of several logs apart, beside their names.
_LABELS: tuple[Role, ...] = ("accent", "good", "bronze", "running", "warn", "gold")


@dataclass(frozen=True)
class LogDrawing:
    """How a page is looked at.

    Attributes:
        left: how many cells of each line are out of sight on the left, unless lines are wrapped.
        highlighter: gives the words of a programming language their colours.
    """

    palette: Palette
    signs: Signs
    wrap: bool = False
    left: int = 0
    pattern: re.Pattern[bytes] | None = None
    highlighter: Highlighter | None = None

    def rows(self, page: Page, width: int) -> list[Strip]:
        """The rows that a page takes."""
        digits = len(f"{max((number or 0 for number in page.numbers), default=0):,}") if page.numbers else 0
        found: list[Strip] = []
        for place, line in enumerate(page.lines):
            margin = [self._sign(page, line.start), *self._label(page, place, width)]
            if page.moments:
                moment = page.moments[place]
                told = wording.clock_seconds(moment) if moment is not None else wording.UNKNOWN
                margin.append(self._dim(f"{told:<8} "))
            if page.numbers:
                number = page.numbers[place]
                margin.append(self._dim(f"{wording.UNKNOWN if number is None else f'{number:,}':>{digits}} "))
            found += self._rows_of(line.text, margin, width)
        return found

    def _sign(self, page: Page, start: int) -> Segment:
        base = self.palette.base
        if start == page.hit:
            return Segment(self.signs.cursor, base + self.palette.style("accent"))
        if page.mark is not None and start >= page.mark:
            return Segment(self.signs.marked, base + self.palette.style("accent"))
        return Segment(" ", base)

    def _label(self, page: Page, place: int, width: int) -> Iterator[Segment]:
        label = page.labels[place] if page.labels else None
        if label is not None:
            role = _LABELS[label.number % len(_LABELS)]
            # The last word, the seed, is what tells runs of one competition apart.
            name, _, last = plain(label.text).rpartition(" ")
            room = min(24, width // 4) - len(last) - 1
            yield Segment(f"{fit(name, room, ellipsis=self.signs.ellipsis)} {last} ", self._style(role))

    def _dim(self, text: str) -> Segment:
        return Segment(text, self.palette.base + self.palette.style("dim"))

    def _rows_of(self, text: str, margin: list[Segment], width: int) -> Iterator[Strip]:
        base = self.palette.base
        text = text.removesuffix("\r")
        beside = sum(segment.cell_length for segment in margin)
        room = max(1, width - beside)
        drawn = Strip(self._segments(text, room))
        if self.pattern is not None and self.pattern.search(text.encode()) is not None:
            drawn = drawn.apply_style(self.palette.style("strong"))
        if not self.wrap:
            part = drawn.crop(self.left, self.left + room) if self.left else drawn
            yield Strip([*margin, *part]).adjust_cell_length(width, base)
            return
        for place in range(0, max(1, drawn.cell_length), room):
            part = drawn.crop(place, place + room)
            head = margin if not place else [Segment(" " * beside, base)]
            yield Strip([*head, *part]).adjust_cell_length(width, base)

    def _segments(self, text: str, room: int) -> list[Segment]:
        limit = WIDEST if self.wrap or self.left else room
        if self.highlighter is not None:
            harmless = plain(text, limit=limit)
            segments = [
                Segment(part, self._style(role)) for part, role in self.highlighter.pieces_of(harmless)
            ]
        else:
            segments = span_segments(spans(text, limit=limit), self.palette)
        if self.pattern is None:
            return segments
        return [piece for segment in segments for piece in self._with_hits(segment, self.pattern)]

    def _style(self, role: Role) -> Style:
        return self.palette.base + self.palette.style(role)

    def _with_hits(self, segment: Segment, pattern: re.Pattern[bytes]) -> Iterator[Segment]:
        style = (segment.style or self.palette.base) + self.palette.style("hit")
        content, place = segment.text.encode(), 0
        for found in pattern.finditer(content):
            if found.end() == found.start():
                continue
            yield Segment(content[place : found.start()].decode("utf-8", "replace"), segment.style)
            yield Segment(content[found.start() : found.end()].decode("utf-8", "replace"), style)
            place = found.end()
        yield Segment(content[place:].decode("utf-8", "replace"), segment.style)
