"""The screen that compares two experiments, split by split and competition by competition."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from rich.cells import cell_len

from mlebench_console.console.fields import NounField
from mlebench_console.console.nouns.comparison import DIFFERENCE, DUEL
from mlebench_console.console.nouns.scoreboard import are_measured
from mlebench_console.console.pieces import fit, foreign
from mlebench_console.console.roles import Drawing, Pieces
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.blocks import Block, flowing, listing, longest, section, wrapped
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.scoreboard import (
    Subject,
    compared_costs,
    comparison,
    differences_of,
)
from mlebench_console.engine.scoreboard.comparison import Comparison, Duel
from mlebench_console.engine.scoreboard.model import MEASURES_BY_INTEREST, Measure

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
        self._found: Comparison | None = None

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
        if self._found is not None:
            self.header.show(partial(self._header, self._found))
            self.line_list.show([partial(self._lines, self._found)])

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

    def _take(self, found: Comparison) -> None:
        self._found = found

    def _header(self, found: Comparison, drawing: Drawing) -> Iterator[Block]:
        """Draw the names of both, who is ahead, by split too, and the differences in their conditions."""
        by = f"   by {found.measure.words}"
        room = max(24, drawing.width - _BESIDE_NAMES - len(by))
        ellipsis = drawing.signs.ellipsis
        second = plain(found.second.replace("\n", " "))
        half = max(room // 2, room - cell_len(second))
        first_name = foreign(found.first, half, ellipsis=ellipsis).rstrip()
        second_name = fit(second, room - cell_len(first_name), ellipsis=ellipsis).rstrip()
        two: Pieces = (
            (" A ", "accent"),
            (first_name, "strong"),
            (f" {found.overall.first:.1f} %", "text"),
            ("   against   ", "dim"),
            ("B ", "accent"),
            (second_name, "strong"),
            (f" {found.overall.second:.1f} %", "text"),
        )
        yield longest((*two, (f"{by}, paired by competition", "dim")), (*two, (by, "dim")))
        yield wrapped(found.verdict, "strong")
        dot = f"  {drawing.signs.dot} "
        parts = [
            f"{name} {part.points:+.1f} on {part.competitions} (p = {part.p_value:.3f})"
            for name, part in differences_of(found)
            if part is not found.overall
        ]
        yield flowing([((part + dot * (part is not parts[-1]), "text"),) for part in parts])
        yield wrapped(found.worth_of_names)
        for text in found.caveats:
            yield wrapped(text, "warn", (" caution: ", "warn"), most=_MOST_LINES)
        yield ()

    def _lines(self, found: Comparison, drawing: Drawing) -> Iterator[Block]:
        """Draw the competitions, those that decide first, then the differences by split and the costs."""
        everything = self._everything
        shown = found.duels if everything else found.deciding
        even = () if everything else tuple(duel for duel in found.duels if not duel.difference)
        columns = self._duel_columns(found, is_wide=drawing.width >= _WIDE)
        duels = Table(columns, found.duels, drawing)
        yield section("all competitions" if everything else "competitions that decide", str(len(shown)))
        if shown:
            yield duels.heading()
            yield from (duels.line(duel, key=DUEL.key(duel)) for duel in shown)
        else:
            yield (("  every competition comes out even", "dim"),)
        if even and len(shown) + len(even) + 4 + _SPLIT_LINES <= self.line_list.size.height:
            yield ()
            yield section("competitions that come out even", str(len(even)))
            yield from (duels.line(duel, key=DUEL.key(duel)) for duel in even)
        yield ()
        yield section("differences by split")
        yield listing(DIFFERENCE.fields, differences_of(found))
        yield from (((f"  {text}", "dim"),) for text in compared_costs(found))
        if found.left_out:
            yield ()
            yield wrapped(f"only one has results of: {', '.join(found.left_out)}", "dim", ("  ", "text"))

    @staticmethod
    def _duel_columns(found: Comparison, *, is_wide: bool) -> tuple[NounField[Duel], ...]:
        """Return the columns of the competitions; wide screens have room for scores and costs."""
        split = "split " if len({duel.complexity for duel in found.duels}) > 1 else ""
        costs = "A_usd B_usd " if is_wide and are_measured(found.costs) else ""
        scores = "better A_scores B_scores" if is_wide else ""
        return DUEL.columns(f"competition {split}A bars B points {costs}{scores}", A={"gap": 2})
