"""Lines as data: pieces of text in roles, fitted to cells, and how they become what Textual draws."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from console.sanitize import PLAIN, Span, plain
from console.tui.theme import Palette, Role, Signs

Piece = tuple[str, Role]
Pieces = tuple[Piece, ...]
Part = TypeVar("Part", bound=Hashable)


@dataclass(frozen=True)
class ColumnSpan:
    """From where to where a column goes on a line.

    Attributes:
        by: what a click on its title sorts by; nothing if empty.
        selectable: whether the cursor may choose it on this line; one that it may not keeps its place among others.
        name: where the name of what it belongs to begins; there may be several beside one another on a line.
    """

    begin: int
    end: int
    by: str = ""
    selectable: bool = True
    name: int = 1

    @property
    def width(self) -> int:
        """How many cells it takes."""
        return self.end - self.begin


@dataclass(frozen=True)
class Line:
    """One line of a list.

    Attributes:
        key: what the line is about; the cursor and marks stay with it.
        cells: of a row the columns that the cursor may choose among, of a heading those that a click sorts by.
        selectable: whether the cursor may stand on it.
    """

    pieces: Pieces = ()
    key: Hashable = None
    cells: tuple[ColumnSpan, ...] = ()
    selectable: bool = False

    def sorts_by(self, place: int) -> str:
        """What a click there sorts by, if this is a heading; otherwise nothing."""
        if self.selectable:
            return ""
        return next((cell.by for cell in self.cells if cell.begin <= place < cell.end), "")


def fit(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """Make our own text exactly `width` cells wide, cut with an ellipsis."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + ellipsis
    return " " * (width - length) + text if right else text + " " * (width - length)


def foreign(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """Make one line of foreign text harmless and exactly `width` cells wide."""
    return fit(plain(text.replace("\n", " "), limit=4 * max(1, width)), width, right=right, ellipsis=ellipsis)


def foreign_end(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Make the end of one line of foreign text harmless, at most `width` cells wide: of a path its file's name."""
    harmless = plain(text[-4 * max(1, width) :].replace("\n", " "))
    if cell_len(harmless) <= width:
        return harmless
    while harmless and cell_len(harmless) > width - 1:
        harmless = harmless[1:]
    return (ellipsis + harmless)[:width]


def width_of(pieces: Iterable[Piece]) -> int:
    """How many cells pieces take."""
    return sum(cell_len(text) for text, _role in pieces)


def spread(left: Pieces, right: Pieces, width: int) -> Pieces:
    """Put pieces to both ends of a line; where there is no room, the left ones are cut."""
    room = width - width_of(right)
    if room < 1:
        return cut(right, width)
    left = cut(left, room - 1)
    return (*left, (" " * (room - width_of(left)), "text"), *right)


def spread_fitting(lefts: Sequence[Pieces], rights: Sequence[Pieces], width: int) -> Pieces:
    """Put pieces to both ends of a line in the longest forms that fit; forms are given longest first.

    The left end is shortened before the right one; only where even the shortest forms are too long is cut.
    """
    for right in rights:
        for left in lefts:
            if width_of(left) + width_of(right) < width:
                return spread(left, right, width)
    return spread(lefts[-1], rights[-1], width)


def fitting(forms: Sequence[Pieces], width: int) -> Pieces:
    """The longest form of a line that fits a width; the last one is cut if need be."""
    return next((form for form in forms if width_of(form) <= width), cut(forms[-1], width))


def joined(groups: Iterable[Pieces], between: Piece, width: int) -> Pieces:
    """Put groups of pieces beside one another as far as they fit; one that does not is left out as a whole."""
    made: Pieces = ()
    for group in groups:
        longer = (*made, between, *group) if made else group
        if width_of(longer) <= width:
            made = longer
    return made


def cut(pieces: Pieces, width: int, ellipsis: str = "") -> Pieces:
    """Leave out what goes beyond a width; where anything is left out, an ellipsis says so if there is one."""
    if ellipsis and width_of(pieces) > width > 0:
        return (*cut(pieces, width - 1), (ellipsis, "dim"))
    kept: list[Piece] = []
    for text, role in pieces:
        length = cell_len(text)
        if length > width:
            if width > 0:
                kept.append((set_cell_size(text, width), role))
            break
        kept.append((text, role))
        width -= length
    return tuple(kept)


def heading(title: str, width: int, signs: Signs, *, note: str = "") -> Pieces:
    """A rule with a title in it, the one frame that a part of a screen has."""
    before: Pieces = ((f" {signs.rule}{signs.rule} ", "faint"), (title, "dim"), (" ", "faint"))
    after: Pieces = ((f" {note} ", "dim"),) if note else ()
    room = width - width_of(before) - width_of(after) - 1
    return (*before, (signs.rule * max(0, room), "faint"), *after)


def bar(share: float, width: int, signs: Signs) -> tuple[str, str]:
    """A bar in eighths of a cell: its full part and its empty part."""
    share = min(1.0, max(0.0, share))
    parts = len(signs.bar_parts)
    eighths = int(share * width * parts)
    full, rest = divmod(eighths, parts)
    drawn = signs.bar_full * full + (signs.bar_parts[rest] if rest else "")
    return drawn, signs.bar_empty * (width - len(drawn))


def shared_out(counts: Mapping[Part, int], width: int) -> dict[Part, int]:
    """Give each part of a whole its cells of a bar: as large as its count is, but none with a count goes without.

    Parts are left out from the end where there are more of them than cells.
    """
    parts = {part: count for part, count in counts.items() if count > 0}
    parts = dict(list(parts.items())[: max(0, width)])
    total = sum(parts.values())
    cells = {part: max(1, count * width // total) for part, count in parts.items()}
    # What rounding has left over, or taken too much, goes to where it is furthest from its share.
    while parts and (spare := width - sum(cells.values())):
        step = 1 if spare > 0 else -1
        able = [part for part in parts if step > 0 or cells[part] > 1]
        nearest = max(able, key=lambda part: step * (parts[part] * width / total - cells[part]))
        cells[nearest] += step
    return cells


def strip(pieces: Sequence[Piece], width: int, palette: Palette, *, raised: bool = False) -> Strip:
    """Draw pieces on a line of a width, on the ground of the screen or of a box that is raised over it."""
    base = palette.raised if raised else palette.base
    segments = [Segment(text, base + palette.style(role)) for text, role in pieces]
    return Strip(segments).adjust_cell_length(width, base)


def overlaid(drawn: Strip, style: Style) -> Strip:
    """Lay a style over everything that is drawn, as the cursor does."""
    return Strip(Segment.apply_style(drawn, post_style=style), drawn.cell_length)


def drawn_style(asked: Style, palette: Palette) -> Style:
    """Return how a style that foreign text asked for is drawn; what would hide text, or blink, is left out."""
    if asked == PLAIN:
        return palette.base
    wanted = Style(
        color=palette.colour_of(asked.color),
        bgcolor=palette.colour_of(asked.bgcolor),
        bold=asked.bold or None,
        dim=asked.dim or None,
        italic=asked.italic or None,
        underline=asked.underline or None,
        reverse=asked.reverse or None,
        strike=asked.strike or None,
    )
    return palette.base + wanted


def span_segments(spans: Iterable[Span], palette: Palette) -> list[Segment]:
    """Draw sanitised foreign text in the styles it asked for."""
    mark = palette.base + palette.style("mark")
    return [Segment(span.text, mark if span.visible else drawn_style(span.style, palette)) for span in spans]


def cells_of(text: str, width: int) -> list[str]:
    """Cut text into pieces that are at most so many cells wide, after a space if there is one; no letter is lost."""
    made = []
    while cell_len(text) > width:
        size, end = 0, 0
        while size + cell_len(text[end]) <= width:
            size += cell_len(text[end])
            end += 1
        end = text.rfind(" ", width // 2, end) + 1 or end
        made.append(text[:end])
        text = text[end:]
    return [*made, text]


_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


class Canvas:
    """Dots in cells; (0, 0) is the lower left corner of a square of 1 by 1."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = max(1, width), max(1, height)
        self._cells = [[0] * self._width for _ in range(self._height)]

    def line(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Set the dots of a straight line; what is outside is moved to the edge."""
        (x0, y0), (x1, y1) = self._place(*start), self._place(*end)
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            share = step / steps
            across, down = round(x0 + share * (x1 - x0)), round(y0 + share * (y1 - y0))
            self._cells[down // 4][across // 2] |= _DOTS[down % 4][across % 2]

    def rows(self, *, ascii_only: bool = False) -> list[str]:
        """The cells as text; empty ones are spaces."""
        return [
            "".join(" " if not cell else "*" if ascii_only else chr(_BLANK + cell) for cell in row)
            for row in self._cells
        ]

    def _place(self, x: float, y: float) -> tuple[int, int]:
        across, down = 2 * self._width - 1, 4 * self._height - 1
        return (
            min(max(round(x * across), 0), across),
            min(max(round((1 - y) * down), 0), down),
        )
