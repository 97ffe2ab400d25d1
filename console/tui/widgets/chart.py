"""Line charts over time: a scale on the left, levels such as cut-offs as horizontal rules, hours below."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise

from mlebench_console.console import wording
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs
from mlebench_console.console.tui.widgets.blocks import Layout

_SCALE = 11
# The width from which there is room for the values of levels beside their names.
_NUMBERED_FROM = 60

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


@dataclass(frozen=True)
class Level:
    """A value drawn as a horizontal rule with its name."""

    value: float
    name: str
    role: Role


@dataclass(frozen=True)
class Series:
    """Points over time, and how to draw them.

    Attributes:
        points: times in seconds and values, in order of time.
        span: the first and the last time of the chart.
        steps: draw each value as constant until the next one, instead of a straight line between them.
        upside_down: draw smaller values higher.
        floor: a value that the scale always includes.
        ends: the labels below the begin and the end of the time axis; if empty, 0 and the duration.
        numbered: whether levels are labelled with their values besides their names.
    """

    points: Sequence[tuple[float, float]]
    span: tuple[float, float]
    role: Role
    number: Callable[[float], str]
    levels: Sequence[Level] = ()
    steps: bool = False
    upside_down: bool = False
    floor: float | None = None
    ends: tuple[str, str] | None = None
    numbered: bool = False


def chart(series: Series, height: int, drawing: Drawing) -> list[Pieces]:
    """Return a chart of exactly `height` lines, and a time axis below; without points, no lines.

    Every level has a line of its own, as far as there are enough. Values between two are drawn on the lower one's
    line or between the two: distances grow with those of the values, and at any height one can read which levels a
    value has reached.
    """
    width, signs = drawing.width, drawing.signs
    if not series.points or width < _SCALE + 10 or height < 2:
        return []
    low, high = _range(series)
    rules = _rules(series, low, high, height)
    labels = {line: _label(levels, series) for line, levels in rules.items()}
    scale_width = max(_SCALE, *(len(label) + 1 for label in labels.values()), 0)
    room = width - scale_width - 2
    up = _placing(series, low, high, height, rules)
    placed = [(_share(at, *series.span), up(value)) for at, value in series.points]
    if series.steps:
        # Before each change is a corner: the new time with the old value.
        corners = ([(point[0], before[1]), point] for before, point in pairwise(placed))
        placed = [placed[0], *chain.from_iterable(corners)]
    top, bottom = (low, high) if series.upside_down else (high, low)
    if series.levels:
        # The last line is for all that is worse than every level, however far away.
        bottom = min((value for _at, value in series.points), key=lambda value: _worth(value, series))
        worst = min(_worth(level.value, series) for level in series.levels)
        below = series.number(bottom) if _worth(bottom, series) < worst else ""
    else:
        below = series.number(bottom)
    lines: list[Pieces] = []
    for place, row in enumerate(_curve(placed, height, drawing.within(room))):
        levels = rules.get(place, ())
        ends = {0: series.number(top), height - 1: below}
        scale = labels.get(place) or ends.get(place, "")
        head: list[Piece] = [
            (f"{scale:>{scale_width}} ", levels[0].role if levels else "dim"),
            (signs.tick if scale else signs.axis, "faint"),
        ]
        lines.append((*head, *_row(row, bool(levels), series.role, signs)))
    ends_of_time = series.ends or ("0", wording.span(series.span[1] - series.span[0]))
    lines.append(_time_line(ends_of_time, scale_width, room))
    return lines


def plotted(series: Series, rows: int) -> Layout:
    """Return a chart of so many lines as a block; in a wide one levels are labelled with their values too."""

    def lines(drawing: Drawing) -> Iterable[Pieces]:
        numbered = replace(series, numbered=drawing.width >= _NUMBERED_FROM)
        return chart(numbered, rows, drawing.within(drawing.width - 2))

    return lines


def strip_chart(
    points: Sequence[tuple[float, float]],
    span: tuple[float, float],
    most: float,
    height: int,
    drawing: Drawing,
) -> list[str]:
    """Return the lines of a chart from 0 to `most` without scale and axis, for charts above one another."""
    placed = [(_share(at, *span), value / most if most else 0.0) for at, value in points]
    return _curve(placed, height, drawing)


def _label(levels: Sequence[Level], series: Series) -> str:
    """Return the name of a level, or the initials of several with the same value, and the value if wanted."""
    name = levels[0].name if len(levels) == 1 else " ".join(level.name[:1].upper() for level in levels)
    return f"{name} {series.number(levels[0].value)}" if series.numbered else name


def _rules(series: Series, low: float, high: float, height: int) -> Mapping[int, tuple[Level, ...]]:
    """Return the levels by their lines, better ones above; below the last one a line is left for worse values."""
    groups = [
        tuple(group)
        for _worth, group in groupby(
            sorted(series.levels, key=lambda level: -_worth(level.value, series)), lambda level: level.value
        )
    ]
    last, rules = max(0, height - 2), dict[int, tuple[Level, ...]]()
    above = -1
    for place, group in enumerate(groups):
        wanted = int((1 - _up(group[0].value, low, high, series)) * height)
        # Leave enough lines for the levels that follow.
        line = max(0, min(max(wanted, above + 1), last - (len(groups) - 1 - place)))
        above = max(above, line)
        rules[above] = (*rules.get(above, ()), *group)
    return rules


def _placing(
    series: Series, low: float, high: float, height: int, rules: Mapping[int, tuple[Level, ...]]
) -> Callable[[float], float]:
    """Return a function from values to heights between 0 and 1; the lines between two levels are for values between."""
    if not rules:
        return lambda value: _up(value, low, high, series)
    ends = sorted((_worth(low, series), _worth(high, series)))
    # A line has four rows of dots, and its rule is in the middle: a value that equals a level is drawn on the second
    # row, better ones above it, and worse ones begin on the next line.
    anchors = [(_worth(levels[-1].value, series), line) for line, levels in sorted(rules.items())]
    tops = [(ends[1], 0), *((worth, 4 * line + 4) for worth, line in anchors)]
    bottoms = [*((worth, 4 * line + 2) for worth, line in anchors), (ends[0], 4 * height)]
    stretches = list(zip(tops, bottoms, strict=True))

    def up(value: float) -> float:
        worth = _worth(value, series)
        for (better, top), (worse, bottom) in stretches:
            if worth >= worse or bottom == 4 * height:
                share = (worth - worse) / (better - worse) if better > worse else 0.0
                dots = max(1, bottom - top)
                down = bottom - 1 - min(dots - 1, max(0, math.ceil(share * dots)))
                return 1 - down / max(1, 4 * height - 1)
        raise AssertionError("the last stretch takes all that is left")

    return up


def _worth(value: float, series: Series) -> float:
    return -value if series.upside_down else value


def _row(row: str, is_rule: bool, role: Role, signs: Signs) -> Pieces:
    """Return a row of the canvas; a rule shows in its empty cells."""
    if not is_rule:
        return ((row, role),)
    return tuple(
        (signs.level * len(cells), "faint") if is_empty else (cells, role)
        for is_empty, group in groupby(row, key=" ".__eq__)
        for cells in ["".join(group)]
    )


def _range(series: Series) -> tuple[float, float]:
    """Return the range of the scale: all levels, and the values except those far away from the levels."""
    values = [value for _at, value in series.points]
    given = [level.value for level in series.levels]
    if given:
        spread = max(given) - min(given) or abs(given[0]) or 1.0
        near = [v for v in values if min(given) - 3 * spread <= v <= max(given) + 3 * spread]
        values = near + given
    if series.floor is not None:
        values.append(series.floor)
    low, high = min(values), max(values)
    # A constant series is drawn in the middle.
    return (low, high) if high > low else (low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2)


def _up(value: float, low: float, high: float, series: Series) -> float:
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return 1 - share if series.upside_down else share


def _share(at: float, begin: float, end: float) -> float:
    return (at - begin) / (end - begin) if end > begin else 0.0


def _time_line(ends: tuple[str, str], scale_width: int, room: int) -> Pieces:
    begin, end = ends
    return ((" " * (scale_width + 2) + begin + " " * max(1, room - len(begin) - len(end)) + end, "dim"),)


def _curve(points: Sequence[tuple[float, float]], height: int, drawing: Drawing) -> list[str]:
    """Return lines of braille dots through points, which go from (0, 0) at the lower left to (1, 1); others are moved.

    Empty cells are spaces, and without braille each other cell is a star.
    """
    width = drawing.width
    across, down = 2 * width - 1, 4 * height - 1
    dots = [
        (min(max(round(x * across), 0), across), min(max(round((1 - y) * down), 0), down)) for x, y in points
    ]
    cells = [[0] * width for _ in range(height)]
    # The first point is a line from itself to itself.
    for (x0, y0), (x1, y1) in pairwise([*dots[:1], *dots]):
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            x, y = round(x0 + step / steps * (x1 - x0)), round(y0 + step / steps * (y1 - y0))
            cells[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
    return [
        "".join(" " if not cell else chr(_BLANK + cell) if drawing.signs.has_braille else "*" for cell in row)
        for row in cells
    ]
