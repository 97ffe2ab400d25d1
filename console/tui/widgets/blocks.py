"""Blocks: what a widget lays out for the width that it gets, such as a wrapped text, a heading or a table.

    self.header.show(in_one_line([name, state]), wrapped(problem.cause, "bad"))
    self.line_list.show([section("GPUs", note), listing(GPU.fields, rows, GPU.key)])

A screen says what is shown; `Painted` and `LineList` lay it out again whenever their width changes. A line of pieces is
a block too: what stands in it is sanitised, and it is cut with an ellipsis where it is too long.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from mlebench_console.console.fields import Columns
from mlebench_console.console.pieces import (
    Line,
    cut,
    fitting,
    foreign_lines,
    heading,
    joined,
    spread_fitting,
    width_of,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.widgets.table import Table

Row = TypeVar("Row")

Block = Callable[[int, Drawing], Iterable["Content"]]
"""Returns what is shown in a width; it is laid out in its turn."""
Content = Line | Pieces | Block

# The most lines of a text, unless more are asked for, and the least room for one.
_MOST_LINES = 4
_LEAST_ROOM = 10
# More of a text than this many times the width is not even sanitised.
_MOST_WIDTHS = 4


def laid_out(content: Iterable[Content], width: int, drawing: Drawing) -> list[Line]:
    """Return the lines of a content in a width; lines that are finished are taken as they are."""
    lines: list[Line] = []
    for each in content:
        if isinstance(each, Line):
            lines.append(each)
        elif callable(each):
            lines += laid_out(each(width, drawing), width, drawing)
        else:
            lines.append(Line(cut(_clean(each, width), width, drawing.signs.ellipsis)))
    return lines


def _clean(pieces: Pieces, width: int) -> Pieces:
    most = _MOST_WIDTHS * max(1, width)
    return tuple((plain(text.replace("\n", " "), limit=most), role) for text, role in pieces)


def wrapped(
    text: str, role: Role = "text", label: Piece = (" ", "text"), *, most: int = _MOST_LINES
) -> Block:
    """Return a text behind a label, wrapped to at most so many lines; no lines for an empty text."""

    def lines(width: int, _drawing: Drawing) -> Iterable[Pieces]:
        before = label
        for part in foreign_lines(text, max(_LEAST_ROOM, width - width_of([label]) - 1), most):
            yield before, (part, role)
            before = (" " * width_of([label]), "text")

    return lines


def section(title: str, note: str = "") -> Block:
    """Return a horizontal rule with a title in it, and a note at its end."""

    def lines(width: int, drawing: Drawing) -> Iterable[Pieces]:
        room = max(_LEAST_ROOM, width - len(note) - 7)
        ((shown, _role),) = cut(_clean(((title, "dim"),), width), room)
        return [heading(shown, width, drawing.signs, note=note)]

    return lines


def in_one_line(groups: Iterable[Pieces], between: str = "") -> Block:
    """Return groups of pieces separated by dots, or by other text; those for which there is no room are left out."""
    found = list(groups)

    def lines(width: int, drawing: Drawing) -> Iterable[Pieces]:
        separator: Piece = (between or f" {drawing.signs.dot} ", "faint")
        return [joined([_clean(group, width) for group in found], separator, width)]

    return lines


def longest(*forms: Pieces) -> Block:
    """Return the longest form that fits; forms are given longest first, and the last one is cut if none fits."""
    return lambda width, _drawing: [fitting([_clean(form, width) for form in forms], width)]


def at_both_ends(lefts: Sequence[Pieces], rights: Sequence[Pieces]) -> Block:
    """Return pieces aligned to both ends of a line, in the longest forms that fit together."""

    def lines(width: int, _drawing: Drawing) -> Iterable[Pieces]:
        left, right = ([_clean(form, width) for form in forms] for forms in (lefts, rights))
        return [spread_fitting(left, right, width)]

    return lines


def listing(
    columns: Columns[Row], rows: Sequence[Row], key: Callable[[Row], Hashable] | None = None
) -> Block:
    """Return a table with its titles; the cursor may be on its rows if they have keys."""

    def lines(width: int, drawing: Drawing) -> Iterable[Line]:
        table = Table(columns, rows, width, drawing)
        yield table.heading()
        yield from (table.line(row, None if key is None else key(row)) for row in rows)

    return lines
