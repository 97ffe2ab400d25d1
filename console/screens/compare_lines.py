"""A comparison of two experiments as lines; a bar to the left is for the first, to the right for the second."""

from __future__ import annotations

from console import wording
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    bar,
    cut,
    fit,
    foreign,
    heading,
)
from console.tui.theme import Role, Signs
from engine.scoreboard import Comparison, Difference, Duel, Side

_HALF = 8
# Below this chance a difference is usually called significant.
_SIGNIFICANT = 0.05


def header(found: Comparison, width: int) -> tuple[Pieces, ...]:
    """Which two, by what, and in what their conditions differ."""
    half = max(12, min(36, (width - 44) // 2))
    first: Pieces = (
        (" A ", "accent"),
        (foreign(found.first, half).rstrip(), "strong"),
        ("   against   ", "dim"),
        ("B ", "accent"),
        (foreign(found.second, half).rstrip(), "strong"),
        (f"   by {found.measure.replace('_', ' ')}, paired by competition", "dim"),
    )
    beware: list[Pieces] = [
        ((f" beware: {foreign(text, width - 10).rstrip()}", "warn"),) for text in found.caveats
    ]
    return (cut(first, width), *beware)


def lines(found: Comparison, width: int, signs: Signs, *, everything: bool) -> list[Line]:
    """Differences by split, then competitions."""
    made = [_titles(width)]
    made += [_difference(name.capitalize(), part) for name, part in found.by_column.items()]
    made.append(_difference("in common", found.overall))
    made += [Line(), Line(((f"  {_verdict(found)}", "text"),)), Line()]
    shown = found.duels if everything else found.deciding
    title = "all competitions" if everything else "competitions that decide"
    made.append(Line(heading(title, width, signs, note=str(len(shown)))))
    made += [_duel(duel, width, signs) for duel in shown]
    if not shown:
        made.append(Line((("  every competition comes out even", "dim"),)))
    if found.left_out:
        names = ", ".join(found.left_out)
        made += [Line(), Line((("  only one has results of: ", "dim"), (foreign(names, width - 28), "dim")))]
    return made


def _verdict(found: Comparison) -> str:
    whole = found.overall
    if not whole.deciding:
        return "no competition tells them apart"
    told = "may well be chance" if whole.p_value >= _SIGNIFICANT else "hardly chance"
    if not whole.points:
        return "they come out even, though not on the same competitions"
    ahead = "A" if whole.points > 0 else "B"
    return f"{ahead} is ahead by {abs(whole.points):.1f} points: {told} (p = {whole.p_value:.3f})"


def _titles(width: int) -> Line:
    text = f"  {'split':<12}{'competitions':>12}{'A %':>9}{'B %':>9}{'A - B':>9}{'p':>8}{'decided by':>12}"
    return Line(((fit(text, width), "dim"),))


def _difference(name: str, part: Difference) -> Line:
    role: Role = "strong" if part.p_value < _SIGNIFICANT else "text"
    head = f"  {name:<12}{part.competitions:>12}{part.first:>9.2f}{part.second:>9.2f}"
    return Line(
        ((head, "text"), (f"{part.points:>+9.2f}{part.p_value:>8.3f}", role), (f"{part.deciding:>12}", "dim"))
    )


def _duel(duel: Duel, width: int, signs: Signs) -> Line:
    scores = width >= 110
    room = max(16, min(48, width - 2 * _HALF - 34 - (31 if scores else 0)))
    pieces: list[Piece] = [
        ("  ", "text"),
        (foreign(duel.competition_id, room, ellipsis=signs.ellipsis), "text"),
        (f" {duel.complexity:<7}", "dim"),
        (f"{duel.first.earned}/{duel.first.seeds:<3}", "text"),
        *_bars(duel.difference, signs),
        (f" {duel.second.earned}/{duel.second.seeds:<3}", "text"),
        (
            f"{duel.difference:>+8.1f}",
            "good" if duel.difference > 0 else "warn" if duel.difference else "dim",
        ),
    ]
    if scores:
        pieces.append((f"   {_mean(duel.first):>12} {signs.dot} {_mean(duel.second):<12}", "dim"))
    return Line(cut(tuple(pieces), width), key=duel.competition_id, selectable=True)


def _mean(side: Side) -> str:
    return wording.UNKNOWN if side.mean_score is None else wording.score(side.mean_score, 9)


def _bars(difference: float, signs: Signs) -> Pieces:
    """A bar from the middle towards whoever is ahead; eighths of a cell would lean to one side only."""
    count = round(abs(difference) / 100 * _HALF)
    full = bar(1.0, count, signs)[0] if count else ""
    empty = signs.bar_empty
    if difference > 0:
        return ((empty * (_HALF - count), "faint"), (full, "good"), ("|", "dim"), (empty * _HALF, "faint"))
    return ((empty * _HALF, "faint"), ("|", "dim"), (full, "warn"), (empty * (_HALF - count), "faint"))
