"""The ruler puts a score where it falls, better always on the left."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.medals import Thresholds
from mlebench_console.console.pieces import width_of
from mlebench_console.console.roles import ASCII, UNICODE, Drawing
from mlebench_console.console.tui.widgets.chart import Level, Series, chart
from mlebench_console.console.tui.widgets.ruler import distances, ruler

LOWER = Thresholds(0.16506, 0.26996, 0.29381, 0.418785, True, "high", 1242)
HIGHER = Thresholds(0.95, 0.93, 0.90, 0.80, False, "high", 100)


def pointer(cuts: Thresholds, score: float, width: int) -> tuple[str, int]:
    drawn = ["".join(text for text, _ in line) for line in ruler(cuts, score, Drawing(0.0, width=width))]
    return drawn[0], drawn[1].index(UNICODE.pointer)


@pytest.mark.parametrize("width", [30, 38, 45, 60, 76, 80, 100, 120, 200])
@pytest.mark.parametrize(
    ("cuts", "scores"),
    [
        (LOWER, (0.1, 0.16506, 0.2, 0.26996, 0.28411, 0.29381, 0.3, 0.418785, 0.9)),
        (HIGHER, (0.99, 0.95, 0.94, 0.93, 0.91, 0.90, 0.85, 0.80, 0.1)),
    ],
)
def test_better_scores_are_further_left_and_between_their_cuts(
    cuts: Thresholds, scores: tuple[float, ...], width: int
) -> None:
    places = [pointer(cuts, score, width)[1] for score in scores]
    assert places == sorted(places) and len(set(places)) == len(places)
    line = pointer(cuts, scores[0], width)[0]
    levels = [place for place, letter in enumerate(line) if letter in "GSB" or line[place : place + 1] == "m"]
    assert places[1::2] == levels


@pytest.mark.parametrize("width", range(38, 200, 7))
def test_every_cut_keeps_its_label_in_any_width(width: int) -> None:
    drawn = "".join(text for line in ruler(LOWER, None, Drawing(0.0, width=width)) for text, _role in line)
    for name, value in (("gold", "0.16"), ("silver", "0.2"), ("bronze", "0.29"), ("median", "0.41")):
        assert any(f"{label} {value}" in drawn for label in (name[0].upper(), name[0], name))


def test_the_narrow_ruler_names_its_ends_and_marks_where_there_is_room() -> None:
    line, labels = ("".join(text for text, _ in each) for each in ruler(LOWER, None, Drawing(0.0, width=74)))
    assert line.startswith("better ") and line.endswith(" worse") and "median 0.41879" in labels


@pytest.mark.parametrize("width", range(30, 200, 7))
def test_it_never_is_wider_than_its_room(width: int) -> None:
    assert all(width_of(line) <= max(width, 34) for line in ruler(LOWER, 0.28, Drawing(0.0, width=width)))


def test_ties_and_equal_cuts_are_drawn() -> None:
    equal = Thresholds(1.0, 1.0, 1.0, 1.0, False, "low")
    assert ruler(equal, 1.0, Drawing(0.0, width=120)) and ruler(equal, 0.5, Drawing(0.0, width=120))
    assert ruler(LOWER, float("nan"), Drawing(0.0, width=120))


def test_the_next_cut_is_told() -> None:
    assert distances(LOWER, 0.28411) == "0.0097 better than bronze needs, 0.01415 short of silver"
    assert distances(HIGHER, 0.93) == "exactly what silver needs, 0.02 short of gold"
    assert distances(HIGHER, 0.1) == "0.7 short of median"


def charted(cuts: tuple[float, ...], score: float, height: int, *, lower: bool) -> tuple[list[str], int]:
    """The labels of a chart's lines, and on which of them a score is drawn."""
    levels = [
        Level(cut, name, "dim")
        for cut, name in zip(cuts, ("gold", "silver", "bronze", "median"), strict=True)
    ]
    series = Series(
        [(0.0, score), (1.0, score)], (0.0, 1.0), "text", str, levels, steps=True, upside_down=lower
    )
    lines = [
        "".join(text for text, _ in line) for line in chart(series, height, Drawing(0.0, ASCII, width=60))
    ]
    return [line[:11].strip() for line in lines[:-1]], next(y for y, line in enumerate(lines) if "*" in line)


@given(
    apart=st.tuples(*[st.floats(0.001, 100) for _cut in range(3)]),
    at=st.floats(-0.5, 4.5),
    height=st.integers(5, 14),
    lower=st.booleans(),
)
def test_in_a_chart_every_cut_has_its_line_and_no_score_is_beyond_a_cut_that_it_has_not_reached(
    apart: tuple[float, ...], at: float, height: int, lower: bool
) -> None:
    sign = 1.0 if lower else -1.0
    cuts = tuple(sign * sum(apart[:count]) for count in range(4))
    # Below 0 it is better than gold; 0 to 1 lies between gold and silver, and so on.
    whole = min(3, max(0, math.floor(at)))
    score = cuts[whole] + sign * (at - whole) * (apart[whole] if whole < 3 else apart[2])
    labels, line = charted(cuts, score, height, lower=lower)
    lines = [labels.index(name) for name in ("gold", "silver", "bronze", "median")]
    assert lines == sorted(set(lines))
    passed = [y for y, cut in zip(lines, cuts, strict=True) if sign * (cut - score) >= 0]
    ahead = [y for y in lines if y not in passed]
    assert all(line <= y for y in passed) and all(line > y for y in ahead)


def test_a_score_between_two_cuts_on_neighbouring_lines_is_drawn_above_the_worse_one() -> None:
    levels = [Level(cut, name, "dim") for cut, name in zip((4.0, 3.0, 2.0, 1.0), "gsbm", strict=True)]
    drawn = [
        chart(Series([(0.0, at)], (0.0, 1.0), "text", str, levels, steps=True), 5, Drawing(0.0, width=60))
        for at in (1.0, 1.1)
    ]
    assert drawn[0] != drawn[1]


def test_cuts_that_are_equal_share_a_line_with_all_their_names() -> None:
    labels, line = charted((0.9, 0.9, 0.8, 0.7), 0.85, 5, lower=False)
    assert labels[0] == "G S" and 0 < line <= labels.index("bronze")


def test_below_the_last_cut_a_chart_tells_the_worst_score_itself_or_nothing() -> None:
    cuts = (0.9, 0.8, 0.7, 0.6)
    assert [charted(cuts, score, 5, lower=False)[0][-1] for score in (0.85, 0.6, 0.55, 0.01)] == [
        "",
        "",
        "0.55",
        "0.01",
    ]


def test_a_score_that_equals_a_cut_is_drawn_on_its_rule_and_a_better_one_above() -> None:
    cuts = (0.9, 0.8, 0.7, 0.6)
    levels = [Level(cut, name, "dim") for cut, name in zip(cuts, "gsbm", strict=True)]
    for height in (5, 12):
        for cut, other in zip(cuts, (1.0, 0.9, 0.8, 0.7), strict=True):
            drawn = Series(
                [(0.0, cut), (1.0, cut)], (0.0, 1.0), "text", "{:.2f}".format, levels, numbered=True
            )
            lines = [
                "".join(text for text, _ in line) for line in chart(drawn, height, Drawing(0.0, width=60))
            ]
            on = next(line for line in lines if f"{cut:.2f}" in line)
            assert set(on.partition("\N{BOX DRAWINGS LIGHT VERTICAL AND LEFT}")[2]) == {
                "\N{BRAILLE PATTERN DOTS-25}"
            }
            above = replace(drawn, points=[(0.0, (cut + other) / 2)] * 2)
            assert not any(
                "\N{BRAILLE PATTERN DOTS-25}" in line
                for line in map(str, chart(above, 12, Drawing(0.0, width=60)))
            )
