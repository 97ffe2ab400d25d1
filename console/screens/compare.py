"""Two experiments beside each other, competition by competition, and whether chance alone could tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textual.widget import Widget

from console.screens import compare_lines
from console.tui.keys import bindings
from console.tui.painting import Line, foreign
from console.tui.screen import ConsoleScreen
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views import scoreboard
from console.views.scoreboard import Subject
from engine.scoreboard import MEASURES_BY_INTEREST, Comparison, Measure
from foundation.problems import Problem
from state.database import Database


class CompareScreen(ConsoleScreen):
    """Differences by split, then the competitions that decide."""

    CONTEXTS = ("compare", "list")
    MODE = "board"
    BINDINGS = bindings("compare")

    def __init__(self, first: Subject, second: Subject) -> None:
        super().__init__()
        self._pair = (first, second)
        self._measure = Measure.ANY_MEDAL
        self._everything = False
        self._found: Comparison | Problem | None = None

    def body(self) -> Iterable[Widget]:
        """What is compared, then the list."""
        yield Painted(id="header")
        yield LineList(id="duels")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """The comparison."""
        first, second = self._pair
        ask = partial(scoreboard.versus, first=first, second=second, measure=self._measure)
        return {"comparison": (ask, self._take)}

    def redraw(self) -> None:
        """Draw the comparison."""
        shown, header = self.query_one("#duels", LineList), self.query_one("#header", Painted)
        width = shown.scrollable_content_region.width or self.size.width
        if isinstance(self._found, Problem):
            header.show(
                *(
                    ((f" {foreign(text, width - 2).rstrip()}", "bad"),)
                    for text in str(self._found).splitlines()
                )
            )
            shown.show((Line(),))
        elif self._found is not None:
            header.show(*compare_lines.header(self._found, width))
            shown.show(compare_lines.lines(self._found, width, self.app.signs, everything=self._everything))

    def action_measure(self) -> None:
        """Compare by the next measure."""
        known = MEASURES_BY_INTEREST
        self._measure = known[(known.index(self._measure) + 1) % len(known)]
        self.ask_again()

    def action_everything(self) -> None:
        """Show all competitions, or those that decide."""
        self._everything = not self._everything
        self.redraw()

    def action_swap(self) -> None:
        """Take the second from the first instead."""
        self._pair = self._pair[::-1]
        self.ask_again()

    def action_back(self) -> None:
        """Go back to the scoreboard."""
        self.app.pop_screen()

    def _take(self, found: Comparison | Problem) -> None:
        self._found = found
        self.redraw()
