"""Foreign text passes one door, and nothing that a terminal would act upon passes with it."""

from __future__ import annotations

import unicodedata

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from mlebench_console.console.sanitize import Span, plain, plain_lines, spans

ATTACKS = {
    "clear the screen": "\x1b[2J",
    "write the clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "set the title": "\x1b]0;owned\x1b\\",
    "link": "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\",
    "ask the terminal": "\x1bP$q q\x1b\\",
    "C1 control sequence": "\x9b31m",
    "C1 string": "\x9d0;owned\x9c",
    "unfinished": "\x1b]0;never ended",
    "alone": "\x1b",
    "delete": "\x7f",
    "null": "\x00",
    "unit separator": "\x1f",
    "right to left": "\u202egnp.exe",
    "zero width": "a\u200bb\ufeffc",
    "line separator": "a\u2028b",
    "tag": "\U000e0041",
    "half a character": "\udc9b",
}
foreign_text = st.text(
    st.one_of(st.characters(), st.sampled_from("\x1b\x07\x9b\x9d\x9c\r\n\t[];0mJH\u202e")), max_size=80
) | st.lists(st.sampled_from([*ATTACKS.values(), "\x1b[31m", "\x1b[0m", "word "]), max_size=12).map("".join)


def harmless(text: str) -> bool:
    return all(unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in text)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_is_shown_and_not_obeyed(attack: str) -> None:
    shown = plain(f"before {attack} after")
    assert harmless(shown)
    assert shown.startswith("before ") and shown.endswith(" after")
    assert len(shown) > len("before  after")


@given(foreign_text)
def test_nothing_that_a_terminal_acts_upon_comes_through(text: str) -> None:
    assert harmless(plain(text))


@given(foreign_text)
def test_a_terminal_shows_exactly_what_comes_through(text: str) -> None:
    shown = plain(text, limit=200)
    screen = pyte.Screen(400, 3)
    pyte.Stream(screen).feed(shown)
    assert screen.title == "" and screen.cursor.y == 0
    assert screen.cursor.attrs == pyte.screens.Char(" ")


@given(foreign_text, st.integers(1, 60))
def test_the_limit_in_cells_holds(text: str, limit: int) -> None:
    assert cell_len(plain(text, limit=limit)) <= limit


def test_what_is_cut_is_counted() -> None:
    assert plain("x" * 90_000, limit=20) == "x" * 11 + "… +89,989"


def test_colours_are_kept_as_looks() -> None:
    red, rest = spans("\x1b[1;31mred\x1b[0m plain")
    assert (red.text, red.style) == ("red", Style(color="color(1)", bold=True))
    assert rest == Span(" plain")


@pytest.mark.parametrize(
    ("code", "colour"),
    [
        ("38;5;208", "color(208)"),
        ("38;2;1;2;255", "#0102ff"),
        ("97", "color(15)"),
        ("38;5;999", None),
        ("38", None),
    ],
)
def test_every_kind_of_colour_is_understood_or_left(code: str, colour: str | None) -> None:
    (span,) = spans(f"\x1b[{code}mx")
    assert span.style == Style(color=colour)


def test_markup_is_only_text() -> None:
    assert spans("[red]x[/red]") == (Span("[red]x[/red]"),)


def test_a_progress_bar_shows_its_last_state() -> None:
    assert plain(" 10%|#\r 60%|###\r100%|#####\r") == "100%|#####"


def test_tabs_reach_the_next_stop() -> None:
    assert plain("ab\tc\td") == "ab      c       d"


def test_lines_stay_lines() -> None:
    assert plain_lines("one\ntwo\x1b[2J") == ("one", "two^[[2J")


def test_a_pile_of_combining_marks_is_cut_off() -> None:
    assert plain("e" + "\u0301" * 40).count("\u0301") == 3
