"""Where a score falls among gold, silver, bronze and median, drawn with the better end on the left."""

from __future__ import annotations

import math
from itertools import pairwise

from competitions.model import Thresholds
from console import wording
from console.tui.painting import Piece, Pieces
from console.tui.theme import Role, Signs

_MARKS: tuple[tuple[str, Role], ...] = (("G", "gold"), ("S", "silver"), ("B", "bronze"), ("median", "dim"))


def ruler(cuts: Thresholds, score: float | None, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """The ruler, a pointer to the score, and how far that is from the next cut-offs.

    Distances between the marks grow with the scores', but no mark ever covers another.
    """
    values = (cuts.gold, cuts.silver, cuts.bronze, cuts.median)
    labels = [f" {sign} {wording.score(value, 9)} " for (sign, _), value in zip(_MARKS, values, strict=True)]
    start, end = f"better {signs.left}", f"{signs.right} worse"
    line, edge = signs.rule, 4
    least = len(start) + 2 * edge + sum(map(len, labels)) + len(labels) + len(end)
    if width < least:
        return _compact(cuts, score, signs)
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
    """The colour of what a score earns."""
    medal = cuts.medal(score)
    if medal is not None:
        return medal
    return "good" if cuts.above_median(score) else "dim"


def distances(cuts: Thresholds, score: float) -> str:
    """How far a score is above the cut-off it has passed and short of the next one."""
    values = {"gold": cuts.gold, "silver": cuts.silver, "bronze": cuts.bronze, "median": cuts.median}
    sign = -1.0 if cuts.is_lower_better else 1.0
    passed = [name for name, value in values.items() if sign * (score - value) >= 0]
    ahead = [name for name in values if name not in passed]
    parts = []
    if passed:
        spare = abs(score - values[passed[0]])
        parts.append(
            f"{spare:.4g} better than {passed[0]} needs" if spare else f"exactly what {passed[0]} needs"
        )
    if ahead:
        parts.append(f"{abs(score - values[ahead[-1]]):.4g} short of {ahead[-1]}")
    return ", ".join(parts)


def _compact(cuts: Thresholds, score: float | None, signs: Signs) -> tuple[Pieces, ...]:
    values = (cuts.gold, cuts.silver, cuts.bronze, cuts.median)
    marks: Pieces = tuple(
        (f"{sign} {wording.score(value, 8)}  ", role)
        for (sign, role), value in zip(_MARKS, values, strict=True)
    )
    if score is None or math.isnan(score):
        return (marks,)
    text = f"{signs.pointer} {wording.score(score, 9)}"
    return marks, ((text, medal_role(cuts, score)), (f"  {distances(cuts, score)}", "dim"))


def _gaps(values: tuple[float, ...], room: int) -> list[int]:
    apart = [abs(second - first) for first, second in pairwise(values)]
    total = sum(apart)
    if not total:
        return [room // len(apart)] * len(apart)
    return [int(room * each / total) for each in apart]


def _place(score: float, values: tuple[float, ...], ticks: list[int], end: int, cuts: Thresholds) -> int:
    sign = -1.0 if cuts.is_lower_better else 1.0
    worth, marks = sign * score, [sign * value for value in values]
    if worth > marks[0]:
        return ticks[0] - 3
    for (high, low), (left, right) in zip(pairwise(marks), pairwise(ticks), strict=True):
        if worth >= low:
            share = (high - worth) / (high - low) if high > low else 0.0
            return left + round(share * (right - left))
    beyond = (marks[3] - worth) / max(marks[0] - marks[3], 1e-12)
    return min(end - 1, ticks[3] + 3 + round(beyond * max(1, end - ticks[3] - 4)))
