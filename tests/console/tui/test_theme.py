"""Text can be read in every theme: colours are far enough from what they stand on, and never speak alone."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from operator import mul
from typing import get_args

import pytest

from mlebench_console.console.nouns.outcomes import OUTCOME_ROLES, outcome_sign
from mlebench_console.console.roles import ASCII, UNICODE, Role, Signs
from mlebench_console.console.tui.painting import overlaid, strip
from mlebench_console.console.tui.theme import ANSI, CONTRAST, DARK, LIGHT, MONOCHROME, PALETTES, Palette
from mlebench_console.state.lifecycle import Outcome

# WCAG: 4.5 for text, 3 for what is large or only marks; 7 is the enhanced level.
_READ = ("text", "dim", "accent", "gold", "silver", "bronze", "good", "running", "warn", "invalid", "bad")
# What a cell of a run may be drawn in.
_OUTCOMES = tuple(dict.fromkeys((*OUTCOME_ROLES.values(), "running", "bad")))
_COLOURED = (DARK, LIGHT, CONTRAST)


def linear_parts(colour: str) -> list[float]:
    """How much light there is of red, green and blue in `#rrggbb`."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb` as WCAG defines it."""
    linear = linear_parts(colour)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


Lab = tuple[float, float, float]
_EYES: dict[str, tuple[tuple[float, float, float], ...]] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    # Machado, Oliveira and Fernandes 2009, severity 1, on linear red, green and blue.
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def seen_as(colour: str, eyes: tuple[tuple[float, float, float], ...]) -> Lab:
    """Where `#rrggbb` lies in CIELAB as some eyes see it."""
    linear = linear_parts(colour)
    red, green, blue = (min(1, max(0, sum(map(mul, row, linear)))) for row in eyes)
    white = (
        (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047,
        0.2126729 * red + 0.7151522 * green + 0.0721750 * blue,
        (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883,
    )
    x, y, z = (part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116 for part in white)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one: Lab, other: Lab) -> float:
    """CIEDE2000 between two colours: 1 is what a trained eye just sees, 100 is black and white."""
    (light1, a1, b1), (light2, a2, b2) = one, other
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    grow = 1.5 - 0.5 * sqrt(mean**7 / (mean**7 + 25**7))
    chroma1, chroma2 = hypot(a1 * grow, b1), hypot(a2 * grow, b2)
    hue1, hue2 = degrees(atan2(b1, a1 * grow)) % 360, degrees(atan2(b2, a2 * grow)) % 360
    turn, middle = hue2 - hue1, hue1 + hue2
    if chroma1 * chroma2 == 0:
        turn = 0
    else:
        if abs(turn) > 180:
            turn -= 360 if turn > 0 else -360
            middle += 360 if middle < 360 else -360
        middle /= 2
    by_hue = 2 * sqrt(chroma1 * chroma2) * sin(radians(turn / 2))
    light, chroma = (light1 + light2) / 2, (chroma1 + chroma2) / 2
    weight = (
        1
        - 0.17 * cos(radians(middle - 30))
        + 0.24 * cos(radians(2 * middle))
        + 0.32 * cos(radians(3 * middle + 6))
        - 0.20 * cos(radians(4 * middle - 63))
    )
    of_light = (light2 - light1) / (1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2))
    of_chroma = (chroma2 - chroma1) / (1 + 0.045 * chroma)
    of_hue = by_hue / (1 + 0.015 * chroma * weight)
    rotated = (
        -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * sin(radians(60 * exp(-(((middle - 275) / 25) ** 2))))
    )
    return sqrt(of_light**2 + of_chroma**2 + of_hue**2 + rotated * of_chroma * of_hue)


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
    assert contrast(palette.colours[role], palette.colours[ground]) >= least


@pytest.mark.parametrize("palette", PALETTES.values(), ids=lambda palette: palette.name)
def test_metals_look_like_metals_where_letters_cannot(palette: Palette) -> None:
    for role, ground in palette.grounds.items():
        assert contrast(palette.colours[role], ground) >= 4.5
        away = difference(
            seen_as(ground, _EYES["usual"]), seen_as(palette.colours["background"], _EYES["usual"])
        )
        assert away >= 10
    grounded = strip((("  G 1.5  ", "gold"),), 20, palette)
    assert [segment.text for segment in grounded if segment.style != palette.base] == (
        ["G 1.5"] if palette.grounds else ["  G 1.5  "]
    )
    curve = strip(((" ⠉⠉⡇ ", "gold"),), 20, palette)
    assert {segment.style.bgcolor for segment in curve if segment.style} == {palette.base.bgcolor}


@pytest.mark.parametrize("palette", [ANSI, MONOCHROME], ids=lambda palette: palette.name)
def test_the_cursor_is_even_where_colours_are_the_terminals(palette: Palette) -> None:
    roles = [role for role in get_args(Role) if role not in ("mark", "hit")]
    row = overlaid(strip([("word ", role) for role in roles], 80, palette), palette.cursor)
    looks = {
        (s.style.color, s.style.bgcolor, s.style.bold, s.style.dim, s.style.reverse) for s in row if s.style
    }
    assert len(looks) == 1


def test_the_measure_of_difference_gives_published_values() -> None:
    # Sharma, Wu and Dalal 2005, pairs 1, 7, 17 and 25.
    assert difference((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert difference((50, 0, 0), (50, -1, 2)) == pytest.approx(2.3669, abs=1e-4)
    assert difference((50, 2.5, 0), (73, 25, -18)) == pytest.approx(27.1492, abs=1e-4)
    assert difference((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387)) == pytest.approx(
        1.2644, abs=1e-4
    )


@pytest.mark.parametrize("palette", _COLOURED, ids=lambda palette: palette.name)
@pytest.mark.parametrize("eyes", _EYES)
def test_no_two_outcomes_look_alike(palette: Palette, eyes: str) -> None:
    """Beside their signs, which all differ; some pairs are close to each other for colour-blind eyes."""
    least = 15.0 if eyes == "usual" else 4.0
    colours = {role: palette.grounds.get(role, palette.colours[role]) for role in _OUTCOMES}
    seen = {role: seen_as(colour, _EYES[eyes]) for role, colour in colours.items()}
    near = {
        pair: round(difference(seen[pair[0]], seen[pair[1]]), 1)
        for pair in combinations(_OUTCOMES, 2)
        if difference(seen[pair[0]], seen[pair[1]]) < least
    }
    assert not near


@pytest.mark.parametrize("palette", PALETTES.values(), ids=lambda palette: palette.name)
@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_no_outcome_needs_its_colour_to_be_told_from_others(palette: Palette, signs: Signs) -> None:
    outcomes = [outcome_sign(outcome, signs) for outcome in Outcome]
    assert len({*outcomes, signs.failed, signs.running, signs.stopped}) == len(outcomes) + 3
    if palette is ANSI:
        assert len({palette.colours[role] for role in _OUTCOMES}) == len(_OUTCOMES)


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


def test_a_bar_has_the_colour_that_stands_behind_words_and_nothing_behind_its_end() -> None:
    filled, *_rest = strip((("██▌", "gold"), ("···", "faint")), 6, LIGHT)
    word, *_rest = strip((("gold", "gold"),), 6, LIGHT)
    assert filled.style is not None and word.style is not None
    assert filled.text == "██▌" and filled.style.color == word.style.bgcolor
    assert filled.style.bgcolor == LIGHT.base.bgcolor
