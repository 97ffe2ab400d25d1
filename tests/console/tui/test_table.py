"""Tables: one list of columns makes heading, cells and widths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.tui.painting import Line, width_of
from console.tui.theme import ASCII
from console.tui.widgets.table import REST, Column, Rest, Table
from console.views.lists import SortOrder

ROWS = [("spaceship-titanic", 1, "", "late"), ("a-rather-long-name-of-a-competition", 22, "", "")]
COLUMNS = [
    Column[tuple[str, int, str, str]]("name", lambda row: row[0], 12, grows=40, by="name"),
    Column[tuple[str, int, str, str]]("seed", lambda row: str(row[1]), 4, right=True, drop=1, chosen=True),
    Column[tuple[str, int, str, str]]("GPU", lambda row: row[2], 4, drop=2),
    Column[tuple[str, int, str, str]]("why", lambda row: row[3], 6, grows=REST),
]


def text(line: Line) -> str:
    return "".join(piece for piece, _role in line.pieces)


def table(width: int, sorting: SortOrder[str] | None = None) -> Table[tuple[str, int, str, str]]:
    return Table(COLUMNS, ROWS, width, ASCII, sorting=sorting)


def test_names_take_what_they_need_before_anything_else_grows() -> None:
    lines = [text(line) for line in (table(80).heading(), *map(table(80).line, ROWS))]
    assert lines[0].split() == ["name", "seed", "GPU", "why"]
    assert "a-rather-long-name-of-a-competition    22" in lines[2]
    assert [len(line) for line in lines] == [80, 80, 80]


def test_what_is_empty_is_left_out_before_what_is_not_and_names_are_cut_last() -> None:
    assert text(table(33).heading()).split() == ["name", "seed", "why"]
    assert text(table(26).heading()).split() == ["name", "why"]
    assert text(table(18).line(ROWS[0])).startswith("  spacesh~  late")


@pytest.mark.parametrize("width", range(1, 100))
def test_no_line_is_wider_than_its_table(width: int) -> None:
    assert all(
        width_of(line.pieces) <= width for line in (table(width).heading(), *map(table(width).line, ROWS))
    )


def test_a_title_shows_what_sorts_and_a_click_on_it_says_by_what() -> None:
    heading = table(60, SortOrder("name", reversed=True)).heading()
    assert "name ^" in text(heading) and heading.sorts_by(3) == "name" and not heading.sorts_by(50)


def test_the_cursor_chooses_among_columns_of_rows_that_have_a_key() -> None:
    row = table(60).line(ROWS[1], key="long")
    assert row.selectable and text(row)[row.cells[0].begin : row.cells[0].end] == "  22"
    assert not table(60).line(ROWS[1]).selectable


def test_a_cell_may_take_the_place_of_all_that_follow() -> None:
    problem = Column[tuple[str, int, str, str]]("seed", lambda _row: Rest((("went wrong", "bad"),)), 4)
    line = Table([COLUMNS[0], problem, *COLUMNS[2:]], ROWS, 60, ASCII).line(ROWS[0])
    assert text(line).rstrip().endswith("  went wrong")


def test_whatever_a_cell_holds_is_harmless() -> None:
    column = replace(COLUMNS[0], cell=lambda _row: (("\x1b]0;title\x07", "bad"), ("\x9b", "text")))
    assert "\x1b" not in text(Table([column], ROWS, 60, ASCII).line(ROWS[0]))
