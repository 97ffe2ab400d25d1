"""A drawing of a score's position among gold, silver, bronze and median, with better scores on the left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from mlebench_console.competitions.medals import Thresholds
from mlebench_console.console import wording
from mlebench_console.console.pieces import fitting, width_of
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.tui.widgets.blocks import Layout

_MARKS: tuple[tuple[str, Role], ...] = (("G", "gold"), ("S", "silver"), ("B", "bronze"), ("median", "dim"))
_NAMES = ("gold", "silver", "bronze", "median")
# The width from which a ruler without values at its marks says in words at which end scores are better.
_WITH_WORDS = 50


def ruler(cuts: Thresholds, score: float | None, drawing: Drawing) -> tuple[Pieces, ...]:
    """Return the ruler, a pointer to the score, and the score's distances from the next cut-offs.

    The marks are placed in proportion to their values as far as none covers another. Where there is no room for the
    values beside the marks, marks are letters, and the values stand below the ruler.
    """
    values, width, signs = _values(cuts), drawing.width, drawing.signs
    start, end = f"better {signs.left}", f"{signs.right} worse"
    marks = [f" {sign} {wording.score(value, 9)} " for (sign, _), value in zip(_MARKS, values, strict=True)]
    line, edge, inset = signs.rule, 4, 1
    has_values = width >= _least_width(start, end, marks, edge)
    if not has_values:
        marks, edge, inset = [sign[0] for sign, _ in _MARKS], 2, 0
        if width < _WITH_WORDS:
            start, end = signs.left, signs.right
    pieces: list[Piece] = [(start + line * edge, "dim")]
    ticks: list[int] = []
    gaps = _gaps(values, max(0, width - _least_width(start, end, marks, edge)))
    for (_, role), mark, gap in zip(_MARKS, marks, (*gaps, 0), strict=True):
        ticks.append(width_of(pieces) + inset)
        pieces += [(mark, role), (line * (gap + 1), "faint")]
    pieces.append((line * edge + end, "dim"))
    labels = () if has_values else (fitting(_labels(values), width),)
    if score is None or math.isnan(score):
        return tuple(pieces), *labels
    beyond = edge - inset
    place = _place(score, values, ticks, width_of(pieces) - len(end), cuts, beyond)
    role, parts = medal_role(cuts, score), [part for part in _distances(cuts, score) if part]
    number: Piece = (wording.score(score, 9), role)
    notes: list[Pieces] = [(number, (f"  {part}", "dim")) for part in (", ".join(parts), parts[-1])]
    if has_values:
        below = max(0, min(place - len(number[0]) // 2, width - width_of(notes[0])))
        notes = [((" " * below, "text"), *notes[0])]
    pointer: Pieces = ((" " * place, "text"), (signs.pointer, role))
    return tuple(pieces), pointer, *labels, fitting(notes, width)


def _least_width(start: str, end: str, marks: Sequence[str], edge: int) -> int:
    return len(start) + 2 * edge + sum(map(len, marks)) + len(marks) + len(end)


def _labels(values: Sequence[float]) -> list[Pieces]:
    """Return the values of the marks in several forms, longest first: by their names, and with fewer digits."""
    letters = [sign[0] for sign, _ in _MARKS]
    return [
        tuple(
            piece
            for name, (_, role), value in zip(names, _MARKS, values, strict=True)
            for piece in ((f"{name} {wording.score(value, digits)}", role), ("  ", "text"))
        )[:-1]
        for names, digits in ((_NAMES, 8), *((letters, digits) for digits in (8, 7, 6, 5)))
    ]


def margined_ruler(cuts: Thresholds, score: float | None) -> Layout:
    """Return the ruler as a block, with an empty cell at both of its ends."""
    return lambda drawing: [
        ((" ", "text"), *line) for line in ruler(cuts, score, drawing.within(drawing.width - 2))
    ]


def medal_role(cuts: Thresholds, score: float | None) -> Role:
    """Return the role of the medal or standing that a score earns."""
    medal = cuts.medal(score)
    if medal is not None:
        return medal
    return "good" if cuts.above_median(score) else "dim"


def to_next(cuts: Thresholds, score: float) -> str:
    """Return the distance to the next better cut-off, or that there is none."""
    _reached, ahead = _distances(cuts, score)
    return ahead or "no cut-off is better than gold's"


def distances(cuts: Thresholds, score: float) -> str:
    """Return a text with the score's distances from the last cut-off reached and from the next one."""
    return ", ".join(filter(None, _distances(cuts, score)))


def _distances(cuts: Thresholds, score: float) -> tuple[str, str]:
    values = dict(zip(_NAMES, _values(cuts), strict=True))
    sign = -1.0 if cuts.is_lower_better else 1.0
    passed = [name for name, value in values.items() if sign * score >= sign * value]
    ahead = [name for name in values if name not in passed]
    reached = ""
    if passed:
        spare = abs(score - values[passed[0]])
        how = f"{spare:.4g} better than" if spare else "exactly what"
        reached = f"{how} {passed[0]} needs"
    return reached, f"{abs(score - values[ahead[-1]]):.4g} short of {ahead[-1]}" if ahead else ""


def _values(cuts: Thresholds) -> tuple[float, ...]:
    return cuts.gold, cuts.silver, cuts.bronze, cuts.median


def _gaps(values: tuple[float, ...], room: int) -> list[int]:
    apart = [abs(second - first) for first, second in pairwise(values)]
    total = sum(apart)
    if not total:
        return [room // len(apart)] * len(apart)
    return [int(room * each / total) for each in apart]


def _place(
    score: float, values: tuple[float, ...], ticks: list[int], end: int, cuts: Thresholds, beyond: int
) -> int:
    """Return the cell of a score: at the mark that it equals, otherwise strictly between the marks next to it."""
    sign = -1.0 if cuts.is_lower_better else 1.0
    worth, marks = sign * score, [sign * value for value in values]
    if worth > marks[0]:
        return ticks[0] - beyond
    for mark, tick in zip(marks, ticks, strict=True):
        if worth == mark:
            return tick
    for (high, low), (left, right) in zip(pairwise(marks), pairwise(ticks), strict=True):
        if worth > low:
            share = (high - worth) / (high - low)
            return min(right - 1, max(left + 1, left + round(share * (right - left))))
    further = (marks[3] - worth) / max(marks[0] - marks[3], 1e-12)
    return min(end - 1, ticks[3] + beyond + round(further * max(1, end - ticks[3] - beyond - 1)))
