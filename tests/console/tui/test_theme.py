"""Text can be read in every theme: colours are far enough from what they stand on, and never speak alone."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from console.tui.theme import (
    ASCII,
    CONTRAST,
    DARK,
    LIGHT,
    PALETTES,
    UNICODE,
    Palette,
    Role,
    Signs,
)

# WCAG: 4.5 for text, 3 for what is large or only marks; 7 is the enhanced level.
_READ = ("text", "dim", "accent", "gold", "silver", "bronze", "good", "running", "warn", "bad")
_COLOURED = (DARK, LIGHT, CONTRAST)


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb` as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def test_the_measure_gives_the_known_ends() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


@pytest.mark.parametrize("palette", _COLOURED, ids=lambda palette: palette.name)
@pytest.mark.parametrize("role", _READ)
@pytest.mark.parametrize("ground", ["background", "raised", "cursor"])
def test_what_is_read_stands_out_from_what_it_stands_on(palette: Palette, role: str, ground: str) -> None:
    least = 7.0 if palette is CONTRAST else 4.5
    # Under the cursor a line is short-lived and marked besides.
    least = 3.0 if ground == "cursor" and palette is not CONTRAST else least
    assert contrast(palette.colours[role], palette.colours[ground]) >= least


@pytest.mark.parametrize("palette", _COLOURED, ids=lambda palette: palette.name)
def test_rules_and_empty_bars_can_be_seen(palette: Palette) -> None:
    least = 4.5 if palette is CONTRAST else 1.8
    assert contrast(palette.colours["faint"], palette.colours["background"]) >= least


@pytest.mark.parametrize("palette", PALETTES.values(), ids=lambda palette: palette.name)
def test_states_differ_from_each_other_in_more_than_colour(palette: Palette) -> None:
    signs = [UNICODE.running, UNICODE.queued, UNICODE.done, UNICODE.stopped, UNICODE.failed, UNICODE.paused]
    outcomes = [
        "G",
        "S",
        "B",
        UNICODE.above_median,
        UNICODE.below_median,
        UNICODE.invalid,
        UNICODE.no_submission,
    ]
    assert len({*signs, *outcomes}) == len(signs) + len(outcomes)
    if palette.is_terminals_own:
        assert not any(value.startswith("#") for value in palette.colours.values())


@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_every_sign_takes_one_cell(signs: Signs) -> None:
    from rich.cells import cell_len

    longer = {"bar_parts", "plus_minus", "enter"}
    for field in fields(Signs):
        value = getattr(signs, field.name)
        if field.name in longer:
            assert all(cell_len(letter) == 1 for letter in value)
        else:
            assert cell_len(value) == 1


def test_ascii_signs_are_ascii() -> None:
    assert all(getattr(ASCII, field.name).isascii() for field in fields(Signs))


@pytest.mark.parametrize("palette", PALETTES.values(), ids=lambda palette: palette.name)
def test_every_role_is_drawn_in_every_theme(palette: Palette) -> None:
    styles = {role: palette.style(role) for role in get_args(Role)}
    # What is read at a glance must not look as plain text does; without colours attributes stand in for them.
    for role in ("strong", "dim", "accent", "gold", "warn", "bad", "mark", "hit"):
        assert styles[role] != styles["text"]
