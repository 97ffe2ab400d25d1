"""Comparisons of two experiments: the difference by split, and by competition what each has earned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from mlebench_console.console import wording
from mlebench_console.console.fields import Cell, Forms, Noun, NounField
from mlebench_console.console.nouns.competition import thresholds
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.nouns.scoreboard import usd_a_run
from mlebench_console.console.pieces import bar
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, better_arrow
from mlebench_console.engine.scoreboard.comparison import SIGNIFICANT, Difference, Duel, Side
from mlebench_console.state.lifecycle import Outcome

# The cells of a bar for a difference of 100 points.
_LONG, _SHORT = 8, 4
# A split by its name, and the difference in it.
SplitDifference = tuple[str, Difference]


def _significant(text: Callable[[Difference], str]) -> Callable[[SplitDifference, Drawing], Cell]:
    """Return the function for cells of a figure that stands out where the difference is significant."""

    def cell(row: SplitDifference, _drawing: Drawing) -> Cell:
        return ((text(row[1]), "strong" if row[1].p_value < SIGNIFICANT else "text"),)

    return cell


DIFFERENCE = Noun[SplitDifference](
    "difference",
    key=lambda row: row[0],
    document=lambda row, _now: asdict(row[1]),
    fields=(
        NounField("split", lambda row, _: row[0], 10),
        NounField("competitions", lambda row, _: str(row[1].competitions), 12, right=True),
        NounField("A %", lambda row, _: f"{row[1].first:.2f}", 6, right=True),
        NounField("B %", lambda row, _: f"{row[1].second:.2f}", 6, right=True),
        NounField("A - B", _significant(lambda part: f"{part.points:+.2f}"), 7, right=True),
        NounField("p", _significant(lambda part: f"{part.p_value:.3f}"), 5, right=True),
        NounField("decided by", lambda row, _: str(row[1].deciding), 10, right=True, role="dim"),
    ),
)


def _points(duel: Duel, _drawing: Drawing) -> Pieces:
    role: Role = "good" if duel.difference > 0 else "warn" if duel.difference else "dim"
    return ((f"{duel.difference:+.1f}", role),)


def _bars(duel: Duel, drawing: Drawing) -> Forms:
    """Return a bar from the middle towards the better side, or one half as long."""
    return Forms([_bar(duel.difference, half, drawing) for half in (_LONG, _SHORT)])


def _bar(difference: float, half: int, drawing: Drawing) -> Pieces:
    """Return a bar in whole cells, since eighths only grow rightwards."""
    count = round(abs(difference) / 100 * half)
    full = bar(1.0, count, drawing.signs)[0] if count else ""
    empty = drawing.signs.bar_empty
    if difference > 0:
        return ((empty * (half - count), "faint"), (full, "good"), ("|", "dim"), (empty * half, "faint"))
    return ((empty * half, "faint"), ("|", "dim"), (full, "warn"), (empty * (half - count), "faint"))


def _better(duel: Duel, drawing: Drawing) -> str:
    cuts = thresholds(duel.competition_id)
    return "" if cuts is None else better_arrow(cuts, drawing.signs)


def _side(letter: str, side: Callable[[Duel], Side]) -> tuple[NounField[Duel], ...]:
    """Return the fields of one side: what it has earned, its scores with the signs of medals, and its costs."""

    def scores(duel: Duel, drawing: Drawing) -> Cell:
        cuts = thresholds(duel.competition_id)
        pieces: list[Piece] = []
        for score in side(duel).scores:
            won = None if cuts is None else cuts.medal(score)
            medal = Outcome(won) if won else None
            sign = "  " if medal is None else f"{outcome_sign(medal, drawing.signs)} "
            pieces += [(" " * bool(pieces) + sign, outcome_role(medal)), (wording.score(score), "dim")]
        return tuple(pieces) or ((wording.UNKNOWN, "dim"),)

    return (
        NounField(letter, lambda duel, _: f"{side(duel).earned}/{side(duel).seeds}", 4, right=True, gap=1),
        NounField(
            f"{letter}_usd",
            lambda duel, _: usd_a_run(side(duel).costs),
            11,
            title=f"{letter} USD a run",
            right=True,
            role="dim",
        ),
        NounField(f"{letter}_scores", scores, 8, grows=42, title=f"{letter} scores"),
    )


DUEL = Noun[Duel](
    "competition",
    key=lambda duel: duel.competition_id,
    document=lambda duel, _now: asdict(duel),
    fields=(
        NounField("competition", lambda duel, _: duel.competition_id, 16, grows=48, words=True),
        NounField("split", lambda duel, _: duel.complexity, 6, role="dim"),
        *_side("A", lambda duel: duel.first),
        NounField("bars", _bars, 2 * _SHORT + 1, grows=2 * _LONG + 1, title="", gap=1),
        *_side("B", lambda duel: duel.second),
        NounField("points", _points, 7, title="A - B", right=True),
        NounField("better", _better, 1, title="", role="dim"),
    ),
)
