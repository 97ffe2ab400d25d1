"""A drawing of a score's position among gold, silver, bronze and median, with better scores on the left."""

from __future__ import annotations

import math
from itertools import pairwise

from mlebench_console.competitions.medals import Thresholds
from mlebench_console.console import wording
from mlebench_console.console.pieces import cut, fitting, width_of
from mlebench_console.console.roles import Piece, Pieces, Role, Signs

_MARKS: tuple[tuple[str, Role], ...] = (("G", "gold"), ("S", "silver"), ("B", "bronze"), ("median", "dim"))


_NAMES = ("gold", "silver", "bronze", "median")
# The width from which the narrow ruler says in words at which end scores are better.
_WITH_WORDS = 50


def ruler(cuts: Thresholds, score: float | None, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Return the ruler, a pointer to the score, and the score's distances from the next cut-offs.

    The marks are placed in proportion to their values as far as none covers another.
    """
    values = (cuts.gold, cuts.silver, cuts.bronze, cuts.median)
    labels = [f" {sign} {wording.score(value, 9)} " for (sign, _), value in zip(_MARKS, values, strict=True)]
    start, end = f"better {signs.left}", f"{signs.right} worse"
    line, edge = signs.rule, 4
    least = len(start) + 2 * edge + sum(map(len, labels)) + len(labels) + len(end)
    if width < least:
        return _compact(cuts, score, width, signs)
    gaps = _gaps(values, width - least)
    pieces: list[Piece] = [(start + line * edge, "dim")]
    ticks: list[int] = []
    for (_, role), label, gap in zip(_MARKS, labels, (*gaps, 0), strict=True):
        ticks.append(sum(len(text) for text, _ in pieces) + 1)
        pieces += [(label, role), (line * (gap + 1), "faint")]
    pieces.append((line * edge + end, "dim"))
    if score is None or math.isnan(score):
        return (tuple(pieces),)
    total = sum(len(text) for text, _ in pieces)
    place = _place(score, values, ticks, total - len(end), cuts)
    role = medal_role(cuts, score)
    text, note = wording.score(score, 9), f"    {distances(cuts, score)}"
    below = max(0, min(place - len(text) // 2, width - len(text) - len(note)))
    return (
        tuple(pieces),
        ((" " * place, "text"), (signs.pointer, role)),
        ((" " * below, "text"), (text, role), (note, "dim")),
    )


def medal_role(cuts: Thresholds, score: float | None) -> Role:
    """Return the role of the medal or standing that a score earns."""
    medal = cuts.medal(score)
    if medal is not None:
        return medal
    return "good" if cuts.above_median(score) else "dim"


def to_next(cuts: Thresholds, score: float) -> str:
    """Return the distance to the next better cut-off, or that there is none."""
    ahead = [(name, value) for name, value in _named(cuts) if not _reaches(cuts, score, value)]
    if not ahead:
        return "no cut-off is better than gold's"
    name, value = ahead[-1]
    return f"{abs(score - value):.4g} short of {name}"


def _named(cuts: Thresholds) -> tuple[tuple[str, float], ...]:
    return ("gold", cuts.gold), ("silver", cuts.silver), ("bronze", cuts.bronze), ("median", cuts.median)


def _reaches(cuts: Thresholds, score: float, value: float) -> bool:
    return (value - score if cuts.is_lower_better else score - value) >= 0


def distances(cuts: Thresholds, score: float) -> str:
    """Return a text with the score's distances from the last cut-off reached and from the next one."""
    return ", ".join(_distances(cuts, score))


def _distances(cuts: Thresholds, score: float) -> list[str]:
    values = dict(_named(cuts))
    passed = [name for name, value in values.items() if _reaches(cuts, score, value)]
    ahead = [name for name in values if name not in passed]
    parts = []
    if passed:
        spare = abs(score - values[passed[0]])
        parts.append(
            f"{spare:.4g} better than {passed[0]} needs" if spare else f"exactly what {passed[0]} needs"
        )
    if ahead:
        parts.append(f"{abs(score - values[ahead[-1]]):.4g} short of {ahead[-1]}")
    return parts


def _compact(cuts: Thresholds, score: float | None, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Return a narrow ruler with letters as marks, and the cut-offs below them, by their names if there is room."""
    values = (cuts.gold, cuts.silver, cuts.bronze, cuts.median)
    digits = next((each for each in (8, 7, 6) if sum(_label_widths(values, each)) <= width), 5)
    named, lettered = (
        tuple(
            piece
            for name, (_, role), value in zip(names, _MARKS, values, strict=True)
            for piece in ((f"{name} {wording.score(value, each)}", role), ("  ", "text"))
        )[:-1]
        for names, each in ((_NAMES, 8), ([sign[0] for sign, _ in _MARKS], digits))
    )
    labels = fitting((named, lettered), width)
    line, has_words = signs.rule, width >= _WITH_WORDS
    start, end = (f"better {signs.left}", f"{signs.right} worse") if has_words else (signs.left, signs.right)
    room = max(0, width - 4 * len(_MARKS) - (len(start) + len(end) - 2))
    pieces: list[Piece] = [(start + 2 * line, "dim")]
    ticks = []
    for (sign, role), gap in zip(_MARKS, (*_gaps(values, room), 0), strict=True):
        ticks.append(width_of(pieces))
        pieces += [(sign[0], role), (line * (gap + 1), "faint")]
    pieces.append((3 * line + end, "dim"))
    if score is None or math.isnan(score):
        return tuple(pieces), labels
    place = _place(score, values, ticks, width_of(pieces) - len(end) + 1, cuts, beyond=2)
    role = medal_role(cuts, score)
    pointer: Pieces = ((" " * place, "text"), (signs.pointer, role))
    number, parts = (wording.score(score, 9), role), _distances(cuts, score)
    texts: list[Pieces] = [(number, (f"  {part}", "dim")) for part in (", ".join(parts), parts[-1])]
    return tuple(pieces), pointer, cut(labels, width), fitting(texts, width)


def _label_widths(values: tuple[float, ...], digits: int) -> list[int]:
    return [len(wording.score(value, digits)) + 4 for value in values]


def _gaps(values: tuple[float, ...], room: int) -> list[int]:
    apart = [abs(second - first) for first, second in pairwise(values)]
    total = sum(apart)
    if not total:
        return [room // len(apart)] * len(apart)
    return [int(room * each / total) for each in apart]


def _place(
    score: float, values: tuple[float, ...], ticks: list[int], end: int, cuts: Thresholds, *, beyond: int = 3
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
