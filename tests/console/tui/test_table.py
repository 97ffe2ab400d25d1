"""Tables: one list of columns makes heading, cells and widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.console.fields import REST, Cell, NounField, Order, Rest, natural
from mlebench_console.console.fitting import _SHORTEST_TITLE
from mlebench_console.console.lists import SortOrder
from mlebench_console.console.pieces import Line, width_of
from mlebench_console.console.roles import ASCII, Drawing
from mlebench_console.console.tui.keys import SCREENS
from mlebench_console.console.tui.widgets.table import Table
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.stillness import stillness

DRAWING = Drawing(0.0, ASCII)
ROWS = [("spaceship-titanic", 1, "", "late"), ("a-rather-long-name-of-a-competition", 22, "", "")]
COLUMNS = [
    NounField[tuple[str, int, str, str]](
        "name",
        lambda row, _drawing: row[0],
        12,
        grows=40,
        order=Order("by name", lambda row, _drawing: row[0]),
    ),
    NounField[tuple[str, int, str, str]](
        "seed", lambda row, _drawing: str(row[1]), 4, right=True, drop=1, chosen=True
    ),
    NounField[tuple[str, int, str, str]]("GPU", lambda row, _drawing: row[2], 4, drop=2),
    NounField[tuple[str, int, str, str]]("why", lambda row, _drawing: row[3], 6, grows=REST),
]


def text(line: Line) -> str:
    return "".join(piece for piece, _role in line.pieces)


def table(width: int, sorting: SortOrder[str] | None = None) -> Table[tuple[str, int, str, str]]:
    return Table(COLUMNS, ROWS, DRAWING.within(width), sorting=sorting)


def test_names_take_what_they_need_before_anything_else_grows() -> None:
    lines = [text(line) for line in (table(80).heading(), *map(table(80).line, ROWS))]
    assert lines[0].split() == ["name", "seed", "GPU", "why"]
    assert "a-rather-long-name-of-a-competition    22" in lines[2]
    assert [len(line) for line in lines] == [80, 80, 80]


def test_what_is_empty_is_left_out_before_what_is_not_and_names_are_cut_last() -> None:
    assert text(table(50).heading()).split() == ["name", "seed", "why"]
    assert text(table(45).heading()).split() == ["name", "why"]
    assert "a-rather-long-name-of-a-competition" in text(table(45).line(ROWS[1]))
    assert text(table(18).line(ROWS[0])).startswith("  spaceship~  late")


def test_one_long_name_among_many_costs_no_figures_and_no_problem_its_end() -> None:
    problem = "refused: the rules are to be accepted"
    rows = [*("spaceship-titanic",) * 11, "a-rather-long-name-of-a-competition"]

    def what(name: str, _drawing: Drawing) -> Cell:
        return Rest(((problem, "bad"),)) if name is rows[0] else ""

    columns = [
        NounField[str]("name", lambda name, _drawing: name, 12, grows=40),
        NounField[str]("date", lambda _name, _drawing: "2026-03-14", 10, drop=1),
        NounField[str]("rate", what, 9),
    ]
    assert text(Table(columns, rows, DRAWING.within(70)).heading()).split() == ["name", "date", "rate"]
    assert text(Table(columns, rows, DRAWING.within(70)).line(rows[0])).rstrip().endswith(problem)
    calm = Table(
        [*columns[:2], NounField[str]("rate", lambda _name, _drawing: "-", 9)], rows, DRAWING.within(60)
    )
    assert text(calm.heading()).split() == ["name", "date", "rate"]
    assert rows[-1] in text(calm.line(rows[-1]))
    few = Table(
        [*columns[:2], NounField[str]("rate", lambda _name, _drawing: "24 MB/s", 9)],
        rows[-2:],
        DRAWING.within(50),
    )
    assert text(few.heading()).split() == ["name", "rate"] and rows[-1] in text(few.line(rows[-1]))


def wasted_beside_cut_names(drawn: Table[Any], rows: Sequence[Any]) -> list[str]:
    """What gives a cut name none of its room: columns wider than any row needs them, and empty ones."""
    columns, spans = drawn._columns, drawn._spans
    needed = [
        max((natural(column.cell(row, drawn._drawing)) for row in rows), default=0) for column in columns
    ]
    names = [
        (column, span, sorted(natural(column.cell(row, drawn._drawing)) for row in rows))
        for column, span in zip(columns, spans, strict=True)
        if column.width < column.grows < REST and span.width and rows
    ]
    is_cut = any(span.width < min(lengths[-1], column.grows) for column, span, lengths in names)
    # The few longest names are cut before any title is.
    are_cut = any(
        span.width < min(lengths[math.ceil(0.9 * len(lengths)) - 1], column.grows)
        for column, span, lengths in names
    )
    return [
        f"{column.title}: {span.width} cells for {need}"
        for column, span, need in zip(columns, spans, needed, strict=True)
        if (is_cut and span.width > max(need, len(column.heading) + 1))
        or (are_cut and span.width > max(need, min(len(column.heading) + 1, _SHORTEST_TITLE)))
        or (is_cut and span.width and column.drop and not need)
    ]


@given(
    names=st.lists(st.integers(0, 70), min_size=1, max_size=5),
    others=st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(0, 3), st.integers(0, 12)), max_size=7
    ),
    width=st.integers(60, 220),
)
def test_no_name_is_cut_beside_room_that_nobody_needs(
    names: list[int], others: list[tuple[int, int, int, int]], width: int
) -> None:
    def of_length(length: int) -> Callable[[int, Drawing], str]:
        return lambda row, _drawing: "x" * (length if row == 0 else length // 2)

    columns = [NounField[int]("name", lambda row, _drawing: "n" * names[row], 10, grows=56)]
    columns += [
        NounField(title * "t", of_length(length), room, drop=drop) for length, room, drop, title in others
    ]
    columns.append(NounField("what", of_length(40), 12, grows=REST))
    rows = range(len(names))
    drawn = Table(columns, rows, DRAWING.within(width))
    assert not wasted_beside_cut_names(drawn, rows)
    assert all(width_of(drawn.line(row).pieces) <= width for row in rows)


async def test_no_screen_cuts_a_name_beside_room_that_nobody_needs(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[tuple[str, ...], Callable[[int], tuple[Table[Any], Sequence[Any]]]] = {}
    init = Table.__init__

    def keep(self: Any, columns: Any, rows: Any, drawing: Drawing, **options: Any) -> None:
        init(self, columns, rows, drawing, **options)

        def at(width: int) -> tuple[Table[Any], Sequence[Any]]:
            made = Table.__new__(Table)
            init(made, columns, rows, drawing.within(width), **options)
            return made, rows

        seen[tuple(column.title for column in columns)] = at

    monkeypatch.setattr(Table, "__init__", keep)
    async with opened(worlds.scored) as console:
        for mode, *_ in SCREENS:
            console.app.show(mode)
            await stillness(console.app, console.pilot)
        await console.press("2", "v", "5", "enter")
        await stillness(console.app, console.pilot)
        assert len(seen) >= 8
        for at in seen.values():
            for width in range(60, 221, 5):
                assert not wasted_beside_cut_names(*at(width)), f"at {width}"


@pytest.mark.parametrize("width", range(1, 100))
def test_no_line_is_wider_than_its_table(width: int) -> None:
    assert all(
        width_of(line.pieces) <= width for line in (table(width).heading(), *map(table(width).line, ROWS))
    )


def test_a_title_shows_what_sorts_and_a_click_on_it_says_by_what() -> None:
    heading = table(60, SortOrder("name", reversed=True)).heading()
    assert "name /" in text(heading) and heading.sorts_by(3) == "name" and not heading.sorts_by(50)


def test_the_cursor_chooses_among_columns_of_rows_that_have_a_key() -> None:
    row = table(60).line(ROWS[1], key="long")
    assert row.selectable and text(row)[row.cells[0].begin : row.cells[0].end] == "  22"
    assert not table(60).line(ROWS[1]).selectable


def test_a_cell_may_take_the_place_of_all_that_follow() -> None:
    problem = NounField[tuple[str, int, str, str]](
        "seed", lambda _row, _drawing: Rest((("went wrong", "bad"),)), 4
    )
    line = Table([COLUMNS[0], problem, *COLUMNS[2:]], ROWS, DRAWING.within(60)).line(ROWS[0])
    assert text(line).rstrip().endswith("  went wrong")


def test_whatever_a_cell_holds_is_harmless() -> None:
    column = replace(COLUMNS[0], cell=lambda _row, _drawing: (("\x1b]0;title\x07", "bad"), ("\x9b", "text")))
    assert "\x1b" not in text(Table([column], ROWS, DRAWING.within(60)).line(ROWS[0]))
