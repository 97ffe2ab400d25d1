"""The screen that compares two experiments, split by split and competition by competition."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from textwrap import wrap

from rich.cells import cell_len

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.fields import Cell
from mlebench_console.console.nouns.outcomes import OUTCOME_ROLES, outcome_sign
from mlebench_console.console.pieces import Line, bar, cells_of, fit, fitting, foreign, heading
from mlebench_console.console.roles import Piece, Pieces, Role, Signs, better_arrow
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.table import Column, Table, column_of
from mlebench_console.console.views.scoreboard import (
    DIFFERENCE_COLUMNS,
    DUEL_COLUMNS,
    DUEL_COST_COLUMNS,
    Subject,
    are_measured,
    compared_costs,
    comparison,
    differences_of,
)
from mlebench_console.engine.scoreboard.comparison import SIGNIFICANT, Comparison, Difference, Duel, Side
from mlebench_console.engine.scoreboard.model import MEASURES_BY_INTEREST, Measure
from mlebench_console.foundation.problems import Problem
from mlebench_console.state.lifecycle import Outcome

_CAUTION = " caution: "
# The cells of the first line that are not for names and the measure.
_BESIDE_NAMES = 35
# The most lines for a caution.
_MOST_LINES = 2
# The lines of the differences by split, below the competitions.
_SPLIT_LINES = 7
# The width of the bar for a difference of 100 points.
_BAR = 8
# On narrower screens bars are half as wide, to make room for names.
_WITH_LONG_BARS = 100
# Narrower screens have no room for scores, nor for costs.
_WIDE = 150


class CompareScreen(ListScreen):
    """Differences by split, then the competitions with differences."""

    CONTEXTS = ("compare", "list")
    MODE = "board"

    def __init__(self, first: Subject, second: Subject) -> None:
        super().__init__()
        self._pair = (first, second)
        self._measure = Measure.ANY_MEDAL
        self._everything = False
        self._found: Comparison | Problem | None = None

    def queries(self) -> Queries:
        """The comparison."""
        first, second = self._pair
        ask = partial(
            comparison,
            first=first,
            second=second,
            measure=self._measure,
            config_file=self.app.places.config_file,
        )
        return {"comparison": (ask, self._take)}

    def toggled_on(self) -> Collection[str]:
        """Return the key of the list of all competitions."""
        return ("compare.everything",) if self._everything else ()

    def redraw(self) -> None:
        """Draw the comparison."""
        shown, header = self.line_list, self.header
        width = shown.line_width
        if isinstance(self._found, Problem):
            texts = str(self._found).splitlines()
            header.show(*(((f" {foreign(text, width - 2).rstrip()}", "bad"),) for text in texts))
            shown.show((Line(),))
        elif self._found is not None:
            header.show(*_header(self._found, width, self.app.signs))
            height = shown.size.height
            shown.show(_lines(self._found, width, height, self.app.signs, everything=self._everything))

    def action_measure(self) -> None:
        """Compare by the next measure."""
        known = MEASURES_BY_INTEREST
        self._measure = known[(known.index(self._measure) + 1) % len(known)]
        self.query_again()

    def action_everything(self) -> None:
        """Show all competitions, or those that decide."""
        self._everything = not self._everything
        self.redraw()
        self.refresh_frame()

    def action_swap(self) -> None:
        """Swap the two."""
        self._pair = self._pair[::-1]
        self.query_again()

    def _take(self, found: Comparison | Problem) -> None:
        self._found = found


def _header(found: Comparison, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Return the names of both, who is ahead, by split too, and the differences in their conditions."""
    by = f"   by {found.measure.words}"
    room = max(24, width - _BESIDE_NAMES - len(by))
    first_name, second_name = (plain(name.replace("\n", " ")) for name in (found.first, found.second))
    half = max(room // 2, room - cell_len(second_name))
    first_name = fit(first_name, half, ellipsis=signs.ellipsis).rstrip()
    second_name = fit(second_name, room - cell_len(first_name), ellipsis=signs.ellipsis).rstrip()
    two: Pieces = (
        (" A ", "accent"),
        (first_name, "strong"),
        (f" {found.overall.first:.1f} %", "text"),
        ("   against   ", "dim"),
        ("B ", "accent"),
        (second_name, "strong"),
        (f" {found.overall.second:.1f} %", "text"),
    )
    first = fitting([(*two, (f"{by}, paired by competition", "dim")), (*two, (by, "dim"))], width)
    lines: list[Pieces] = [first]
    lines += [((f" {part}", "strong"),) for part in wrap(found.verdict, max(20, width - 3))]
    by_split = [part for part in differences_of(found) if part[1] is not found.overall]
    if by_split:
        parts = (
            f"{name} {part.points:+.1f} on {part.competitions} (p = {part.p_value:.3f})"
            for name, part in by_split
        )
        lines += [((f" {part}", "text"),) for part in cells_of(f"  {signs.dot} ".join(parts), width - 2)]
    lines += [((f" {part}", "text"),) for part in wrap(found.worth_of_names, max(20, width - 3))]
    room = width - len(_CAUTION) - 1
    lines += [
        ((f"{'' if place else _CAUTION:<{len(_CAUTION)}}{part}", "warn"),)
        for text in found.caveats
        for place, part in enumerate(cells_of(foreign(text, _MOST_LINES * room).rstrip(), room))
    ]
    return (*lines, ())


def _lines(found: Comparison, width: int, height: int, signs: Signs, *, everything: bool) -> list[Line]:
    """Return the competitions, those that decide first, then the differences by split and the costs."""
    lines: list[Line] = []
    shown = found.duels if everything else found.deciding
    even = () if everything else tuple(duel for duel in found.duels if not duel.difference)
    half = _BAR if width >= _WITH_LONG_BARS else _BAR // 2
    columns = _duel_columns(found, signs, half=half, wide=width >= _WIDE)
    duels = Table(columns, found.duels, width, signs)
    title = "all competitions" if everything else "competitions that decide"
    lines.append(Line(heading(title, width, signs, note=str(len(shown)))))
    if shown:
        lines += [duels.heading(), *(duels.line(duel, key=duel.competition_id) for duel in shown)]
    else:
        lines.append(Line((("  every competition comes out even", "dim"),)))
    if even and len(lines) + len(even) + 2 + _SPLIT_LINES <= height:
        lines += [Line(), Line(heading("competitions that come out even", width, signs, note=str(len(even))))]
        lines += [duels.line(duel, key=duel.competition_id) for duel in even]
    differences = differences_of(found)
    by_split = Table(_difference_columns(), differences, width, signs)
    lines += [Line(), Line(heading("differences by split", width, signs))]
    lines += [by_split.heading(), *map(by_split.line, differences)]
    lines += [Line(((f"  {foreign(text, width - 3).rstrip()}", "dim"),)) for text in compared_costs(found)]
    if found.left_out:
        text = plain(f"only one has results of: {', '.join(found.left_out)}")
        names = wrap(text, max(20, width - 3), break_on_hyphens=False)
        lines += [Line(), *(Line(((f"  {part}", "dim"),)) for part in names)]
    return lines


def _difference_columns() -> list[Column[tuple[str, Difference]]]:
    split, competitions, first, second, points, p_value, deciding = DIFFERENCE_COLUMNS

    def significant(text: str, part: Difference) -> Pieces:
        return ((text, "strong" if part.p_value < SIGNIFICANT else "text"),)

    return [
        column_of(split, 10),
        column_of(competitions, 12),
        column_of(first, 6),
        column_of(second, 6),
        Column(points.title, lambda row: significant(points.text(row), row[1]), 7, right=True),
        Column(p_value.title, lambda row: significant(p_value.text(row), row[1]), 5, right=True),
        column_of(deciding, 10, role="dim"),
    ]


def _duel_columns(found: Comparison, signs: Signs, *, half: int, wide: bool) -> list[Column[Duel]]:
    competition, split, first, second, points, first_scores, second_scores = DUEL_COLUMNS

    def medal(duel: Duel, score: float) -> Piece:
        won = registry.get(duel.competition_id).thresholds.medal(score)
        return (
            (f"{outcome_sign(Outcome(won), signs)} ", OUTCOME_ROLES[Outcome(won)]) if won else ("  ", "dim")
        )

    def scores(side: Callable[[Duel], Side]) -> Callable[[Duel], Cell]:
        """Return the function for cells with the scores of a side, each with the sign of its medal."""

        def cell(duel: Duel) -> Cell:
            known = side(duel).scores
            pieces: list[Piece] = []
            for score in known:
                pieces += [medal(duel, score), (f"{wording.score(score)} ", "dim")]
            return tuple(pieces) or ((wording.UNKNOWN, "dim"),)

        return cell

    def better(duel: Duel) -> str:
        return better_arrow(registry.get(duel.competition_id).thresholds, signs)

    with_costs = wide and are_measured(found.costs)

    def difference(duel: Duel) -> Pieces:
        role: Role = "good" if duel.difference > 0 else "warn" if duel.difference else "dim"
        return ((points.text(duel), role),)

    return [
        column_of(competition, 16, grows=48),
        *([column_of(split, 6, role="dim")] if len({duel.complexity for duel in found.duels}) > 1 else []),
        column_of(first, 4),
        Column("", lambda duel: _bars(duel.difference, half, signs), 2 * half + 1, gap=1),
        column_of(second, 4, gap=1),
        Column(points.title, difference, 7, right=True),
        *(column_of(each, 11, role="dim") for each in DUEL_COST_COLUMNS if with_costs),
        *([Column("", better, 1, role="dim")] if wide else []),
        *([Column(first_scores.title, scores(lambda duel: duel.first), 8, grows=42)] if wide else []),
        *([Column(second_scores.title, scores(lambda duel: duel.second), 8, grows=42)] if wide else []),
    ]


def _bars(difference: float, half: int, signs: Signs) -> Pieces:
    """Return a bar from the middle towards the better side; in whole cells, since eighths only grow rightwards."""
    count = round(abs(difference) / 100 * half)
    full = bar(1.0, count, signs)[0] if count else ""
    empty = signs.bar_empty
    if difference > 0:
        return ((empty * (half - count), "faint"), (full, "good"), ("|", "dim"), (empty * half, "faint"))
    return ((empty * half, "faint"), ("|", "dim"), (full, "warn"), (empty * (half - count), "faint"))
