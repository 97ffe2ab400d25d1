"""Fields of a noun: what lists, commands and filters make of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pytest

from mlebench_console.console.cli.output import say_rows
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField, Order, Rest, text_of
from mlebench_console.console.lists import SortOrder
from mlebench_console.console.roles import ASCII, Drawing
from mlebench_console.console.tui.widgets.table import Table


@dataclass(frozen=True)
class Fruit:
    name: str
    weight: int
    note: str = ""


def draw_note(row: Fruit, _drawing: Drawing) -> Cell:
    return Rest((("bad", "bad"),), ((f": {row.note}", "warn"),)) if row.note else "good"


FRUIT = Noun[Fruit](
    "fruit",
    key=lambda row: row.name,
    document=lambda row, _now: asdict(row),
    fields=(
        NounField(
            "name",
            lambda row, _: row.name,
            6,
            grows=20,
            words=True,
            order=Order("by name", lambda row, _: row.name),
        ),
        NounField(
            "weight",
            lambda row, _: Forms([((f"{row.weight} grams", "text"),), ((f"{row.weight}", "text"),)]),
            4,
            order=Order("by weight", lambda row, _: row.weight),
            matches=lambda row, value: value == str(row.weight),
        ),
        NounField("origin", lambda _row, _: "Italy", 6, drop=2, usual="Italy"),
        NounField("note", draw_note, 6, wraps=3, matches=lambda row, value: value in row.note),
        NounField("why", lambda row, _: row.note, 8, grows=REST, drop=1),
    ),
)
DRAWING = Drawing(0.0, ASCII)
ROWS = [Fruit("pear", 120), Fruit("apple", 80, "eaten by a worm"), Fruit("fig", 80)]


def test_a_place_chooses_fields_and_their_layout() -> None:
    name, weight = FRUIT.columns("name weight", name={"width": 9, "title": "fruit"})
    assert (name.heading, name.width, weight.heading) == ("fruit", 9, "weight")
    assert name.cell(ROWS[0], DRAWING) == "pear"


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["pear", "apple", "fig"]),
        ("A", ["pear", "apple"]),
        ("weight:80", ["apple", "fig"]),
        ("we:80 !note:worm", ["fig"]),
        ("!fig", ["pear", "apple"]),
        ("!weight:80 pe", ["pear"]),
    ],
)
def test_a_filter_takes_words_and_fields_by_the_beginning_of_their_names(
    typed: str, found: list[str]
) -> None:
    chosen = FRUIT.filter(typed)
    assert [row.name for row in ROWS if chosen.accepts(row, DRAWING)] == found and not chosen.unknown


def test_a_filter_says_which_fields_do_not_exist() -> None:
    assert FRUIT.filter("colour:red name:fig").unknown == ("colour", "name")


def test_rows_of_one_rank_keep_their_order() -> None:
    by_weight = FRUIT.ordered(ROWS, SortOrder("weight"), DRAWING)
    assert [row.name for row in by_weight] == ["apple", "fig", "pear"]


def test_a_cell_is_read_in_its_longest_form_and_without_what_spans_other_columns() -> None:
    weight, note = FRUIT.columns("weight note")
    assert text_of(weight.cell(ROWS[0], DRAWING)) == "120 grams"
    assert text_of(note.cell(ROWS[1], DRAWING)) == "bad"


def test_a_long_text_goes_on_below_its_row_and_loses_nothing() -> None:
    table = Table(FRUIT.columns("name note why"), ROWS, DRAWING.within(24))
    lines = ["".join(text for text, _role in line.pieces).rstrip() for line in table.lines(ROWS[1], "apple")]
    assert lines == ["  apple  bad: eaten by a", "            worm"]
    assert [line.selectable for line in table.lines(ROWS[1], "apple")] == [True, False]


def test_a_pipe_has_all_columns_and_a_terminal_those_that_say_something(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = FRUIT.columns("name weight origin why")
    say_rows(columns, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "name   weight     origin  why",
        "pear   120 grams  Italy",
        "apple  80 grams   Italy   eaten by a worm",
        "fig    80 grams   Italy",
    ]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "26")
    say_rows(columns, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "name   weight",
        "    why",
        "pear   120 grams",
        "apple  80 grams",
        "    eaten by a worm",
        "fig    80 grams",
    ]
