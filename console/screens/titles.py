"""The line of names over a table's columns: which of them sorts, and by which a click would."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len

from console.tui.painting import (
    ColumnSpan,
    Line,
    Piece,
    fit,
)
from console.tui.theme import Role, Signs
from console.views.lists import By, SortOrder


@dataclass(frozen=True)
class Column:
    """One name and how much room it has.

    Attributes:
        by: what a click on it sorts by; nothing if empty.
    """

    text: str
    width: int
    by: str = ""
    right: bool = False
    role: Role = "dim"


def titles_line(columns: Iterable[Column], sorting: SortOrder[By], signs: Signs) -> Line:
    """The names side by side, an arrow at what sorts."""
    arrow = signs.up if sorting.reversed else signs.down
    pieces: list[Piece] = []
    titles: list[ColumnSpan] = []
    begin = 0
    for column in columns:
        text, role = column.text, column.role if column.text else "text"
        if column.by and column.by == sorting.by:
            spaced = f"{text} {arrow}"
            text, role = spaced if cell_len(spaced) < column.width else text + arrow, "accent"
        pieces.append((fit(text, column.width, right=column.right), role))
        if column.by:
            titles.append(ColumnSpan(begin, begin + column.width, column.by))
        begin += column.width
    return Line(tuple(pieces), cells=tuple(titles))
