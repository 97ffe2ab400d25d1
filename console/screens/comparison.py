"""The screen that compares two experiments, split by split and competition by competition."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from textwrap import wrap

from rich.cells import cell_len

from mlebench_console.console.fields import NounField
from mlebench_console.console.nouns.comparison import DIFFERENCE, DUEL
from mlebench_console.console.nouns.scoreboard import are_measured
from mlebench_console.console.pieces import Line, cells_of, fit, fitting, foreign, heading
from mlebench_console.console.roles import Pieces
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.scoreboard import (
    Subject,
    compared_costs,
    comparison,
    differences_of,
)
from mlebench_console.engine.scoreboard.comparison import Comparison, Duel
from mlebench_console.engine.scoreboard.model import MEASURES_BY_INTEREST, Measure
from mlebench_console.foundation.problems import Problem

_CAUTION = " caution: "
# The cells of the first line that are not for names and the measure.
_BESIDE_NAMES = 35
# The most lines for a caution.
_MOST_LINES = 2
# The lines of the differences by split, below the competitions.
_SPLIT_LINES = 7
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
            header.show(*self._header(self._found))
            shown.show(self._lines(self._found))

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

    def _header(self, found: Comparison) -> tuple[Pieces, ...]:
        """Return the names of both, who is ahead, by split too, and the differences in their conditions."""
        width, drawing = self.line_list.line_width, self.app.drawing
        by = f"   by {found.measure.words}"
        room = max(24, width - _BESIDE_NAMES - len(by))
        names = [plain(name.replace("\n", " ")) for name in (found.first, found.second)]
        half = max(room // 2, room - cell_len(names[1]))
        first_name = fit(names[0], half, ellipsis=drawing.signs.ellipsis).rstrip()
        second_name = fit(names[1], room - cell_len(first_name), ellipsis=drawing.signs.ellipsis).rstrip()
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
            lines += [
                ((f" {part}", "text"),) for part in cells_of(f"  {drawing.signs.dot} ".join(parts), width - 2)
            ]
        lines += [((f" {part}", "text"),) for part in wrap(found.worth_of_names, max(20, width - 3))]
        room = width - len(_CAUTION) - 1
        lines += [
            ((f"{'' if place else _CAUTION:<{len(_CAUTION)}}{part}", "warn"),)
            for text in found.caveats
            for place, part in enumerate(cells_of(foreign(text, _MOST_LINES * room).rstrip(), room))
        ]
        return (*lines, ())

    def _lines(self, found: Comparison) -> list[Line]:
        """Return the competitions, those that decide first, then the differences by split and the costs."""
        width, drawing, everything = self.line_list.line_width, self.app.drawing, self._everything
        lines: list[Line] = []
        signs = drawing.signs
        shown = found.duels if everything else found.deciding
        even = () if everything else tuple(duel for duel in found.duels if not duel.difference)
        duels = Table(self._duel_columns(found), found.duels, width, drawing)
        title = "all competitions" if everything else "competitions that decide"
        lines.append(Line(heading(title, width, signs, note=str(len(shown)))))
        if shown:
            lines += [duels.heading(), *(duels.line(duel, key=DUEL.key(duel)) for duel in shown)]
        else:
            lines.append(Line((("  every competition comes out even", "dim"),)))
        if even and len(lines) + len(even) + 2 + _SPLIT_LINES <= self.line_list.size.height:
            lines += [
                Line(),
                Line(heading("competitions that come out even", width, signs, note=str(len(even)))),
            ]
            lines += [duels.line(duel, key=DUEL.key(duel)) for duel in even]
        differences = differences_of(found)
        by_split = Table(DIFFERENCE.fields, differences, width, drawing)
        lines += [Line(), Line(heading("differences by split", width, signs))]
        lines += [by_split.heading(), *map(by_split.line, differences)]
        lines += [
            Line(((f"  {foreign(text, width - 3).rstrip()}", "dim"),)) for text in compared_costs(found)
        ]
        if found.left_out:
            text = plain(f"only one has results of: {', '.join(found.left_out)}")
            names = wrap(text, max(20, width - 3), break_on_hyphens=False)
            lines += [Line(), *(Line(((f"  {part}", "dim"),)) for part in names)]
        return lines

    def _duel_columns(self, found: Comparison) -> tuple[NounField[Duel], ...]:
        """Return the columns of the competitions; wide screens have room for scores and costs."""
        wide = self.line_list.line_width >= _WIDE
        split = "split " if len({duel.complexity for duel in found.duels}) > 1 else ""
        costs = "A_usd B_usd " if wide and are_measured(found.costs) else ""
        scores = "better A_scores B_scores" if wide else ""
        return DUEL.columns(f"competition {split}A bars B points {costs}{scores}", A={"gap": 2})
