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
    foreign,
    foreign_lines,
    foreign_path,
    heading,
    joined,
    spread_fitting,
    width_of,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.widgets.table import Table

Row = TypeVar("Row")

Layout = Callable[[Drawing], Iterable["Block"]]
"""Returns what is shown in the width of a drawing; it is laid out in its turn."""
Block = Line | Pieces | Layout

# The most lines of a text, unless more are asked for, and the least room for one.
_MOST_LINES = 4
_LEAST_ROOM = 10
# More of a text than this many times the width is not even sanitised.
_MOST_WIDTHS = 4


def laid_out(content: Iterable[Block], drawing: Drawing) -> list[Line]:
    """Return the lines of a content in a width; lines that are finished are taken as they are."""
    lines: list[Line] = []
    for each in content:
        if isinstance(each, Line):
            lines.append(each)
        elif callable(each):
            lines += laid_out(each(drawing), drawing)
        else:
            lines.append(Line(cut(_clean(each, drawing), drawing.width, drawing.signs.ellipsis)))
    return lines


def _clean(pieces: Pieces, drawing: Drawing) -> Pieces:
    most = _MOST_WIDTHS * max(1, drawing.width)
    return tuple((plain(text.replace("\n", " "), limit=most), role) for text, role in pieces)


def wrapped(
    text: str,
    role: Role = "text",
    label: Piece = (" ", "text"),
    *,
    most: int = _MOST_LINES,
    key: Hashable = None,
) -> Layout:
    """Return a text behind a label, wrapped to at most so many lines; no lines for an empty text.

    The cursor may be on them if there is a key.
    """

    def lines(drawing: Drawing) -> Iterable[Line]:
        before, room = label, max(_LEAST_ROOM, drawing.width - width_of([label]) - 1)
        for place, part in enumerate(foreign_lines(text, room, most)):
            line_key = None if key is None else (key, place)
            yield Line((before, (part, role)), key=line_key, selectable=key is not None)
            before = (" " * width_of([label]), "text")

    return lines


def section(title: str, note: str = "") -> Layout:
    """Return a horizontal rule with a title in it, and a note at its end."""

    def lines(drawing: Drawing) -> Iterable[Pieces]:
        room = max(_LEAST_ROOM, drawing.width - len(note) - 7)
        ((shown, _role),) = cut(_clean(((title, "dim"),), drawing), room)
        return [heading(shown, drawing.width, drawing.signs, note=note)]

    return lines


def in_one_line(groups: Iterable[Pieces], label: Piece = ("", "text"), *, between: str = "") -> Layout:
    """Return groups of pieces behind a label, separated by dots or by other text.

    Those for which there is no room are left out.
    """
    found = list(groups)

    def lines(drawing: Drawing) -> Iterable[Pieces]:
        separator: Piece = (between or f" {drawing.signs.dot} ", "faint")
        room = drawing.width - width_of([label])
        return [(label, *joined([_clean(group, drawing) for group in found], separator, room))]

    return lines


def longest(*forms: Pieces) -> Layout:
    """Return the longest form that fits; forms are given longest first, and the last one is cut if none fits."""
    return lambda drawing: [fitting([_clean(form, drawing) for form in forms], drawing.width)]


def at_both_ends(lefts: Sequence[Pieces], rights: Sequence[Pieces]) -> Layout:
    """Return pieces aligned to both ends of a line, in the longest forms that fit together.

    The last form of the right end may be empty; then the left one is cut where it is too long.
    """

    def lines(drawing: Drawing) -> Iterable[Pieces]:
        left, right = ([_clean(form, drawing) for form in forms] for forms in (lefts, rights))
        is_alone = not right[-1] and width_of(left[-1]) >= drawing.width
        return [left[-1] if is_alone else spread_fitting(left, right, drawing.width)]

    return lines


def listing(
    columns: Columns[Row],
    rows: Sequence[Row],
    key: Callable[[Row], Hashable] | None = None,
    *,
    titles: bool = True,
    mark: Callable[[Row], bool] | None = None,
) -> Layout:
    """Return a table; the cursor may be on its rows if they have keys."""

    def lines(drawing: Drawing) -> Iterable[Line]:
        table = Table(columns, rows, drawing, mark=mark)
        if titles:
            yield table.heading()
        for row in rows:
            yield from table.lines(row, None if key is None else key(row))

    return lines


def shortened(
    text: str, role: Role = "text", *, before: Pieces = (), after: Pieces = (), is_path: bool = False
) -> Layout:
    """Return a line whose text is cut where what stands after it would not fit; the end of a path is kept."""

    def lines(drawing: Drawing) -> Iterable[Pieces]:
        room = max(_LEAST_ROOM, drawing.width - width_of(before) - width_of(after))
        if is_path:
            shown = foreign_path(text, room, ellipsis=drawing.signs.ellipsis)
        else:
            shown = foreign(text, room, ellipsis=drawing.signs.ellipsis).rstrip()
        return [(*before, (shown, role), *after)]

    return lines


def flowing(groups: Iterable[Pieces], label: Piece = (" ", "text")) -> Layout:
    """Return groups of pieces behind a label, on as many lines as they need; no group is divided."""
    found = list(groups)

    def lines(drawing: Drawing) -> Iterable[Pieces]:
        before: Piece = label
        line: Pieces = ()
        for group in found:
            if line and width_of((before, *line, *group)) > drawing.width:
                yield before, *line
                before, line = (" " * width_of([label]), "text"), ()
            line = (*line, *group)
        if line:
            yield before, *line

    return lines
