"""What lies behind a row of the scoreboard: its measures by split, and every competition with its seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textual.widget import Widget

from console.screens import experiment_lines, plot_lines
from console.tui.keys import bindings
from console.tui.painting import Line, foreign
from console.tui.screen import ConsoleScreen
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views import scoreboard
from console.views.scoreboard import Behind, Subject
from engine.scoreboard import COLUMNS
from foundation.problems import Problem
from state.database import Database


class ExperimentScreen(ConsoleScreen):
    """One list over one column of the scoreboard."""

    CONTEXTS = ("experiment", "list", "matrix")
    MODE = "board"
    BINDINGS = bindings("experiment")

    def __init__(self, subject: Subject, *, column: str = "all") -> None:
        super().__init__()
        self._subject = subject
        self._column = column
        self._found: Behind | Problem | None = None
        self._as_plots = False

    def body(self) -> Iterable[Widget]:
        """Facts, then the list."""
        yield Painted(id="header")
        yield LineList(id="trials")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """What lies behind the row."""
        ask = partial(
            scoreboard.behind,
            subject=self._subject,
            config_file=self.app.places.config_file,
            pad_missing=False,
        )
        return {"behind": (ask, self._take)}

    def redraw(self) -> None:
        """Draw the column as it is."""
        shown, header = self.query_one("#trials", LineList), self.query_one("#header", Painted)
        width = shown.scrollable_content_region.width or self.size.width
        if isinstance(self._found, Problem):
            text = " ".join(str(self._found).splitlines())
            header.show(((f" {foreign(text, width - 2).rstrip()}", "bad"),))
            shown.show((Line(),))
        elif self._found is not None:
            header.show(*experiment_lines.header(self._found, self._column, width, self.app.signs))
            shown.show(self._lines(self._found, width))

    def on_line_list_opened(self) -> None:
        """Open the run under the cursor."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run under the cursor."""
        shown = self.query_one("#trials", LineList)
        if not isinstance(self._found, Behind) or not isinstance(shown.key, str):
            return
        trials = self._found.trials_of(shown.key)
        trial = trials[shown.column] if shown.column < len(trials) else None
        if trial is not None and trial.run_id is not None:
            self.app.show_run(trial.run_id)
        else:
            self.app.say("there is no run of it here")

    def action_plots(self) -> None:
        """Draw its plots, or list its competitions again."""
        self._as_plots = not self._as_plots
        shown = self.query_one("#trials", LineList)
        shown.show(())
        shown.scroll_to(y=0, animate=False)
        self.redraw()

    def action_export(self) -> None:
        """Preview its row."""
        from console.screens.export import ExportScreen

        self.app.push_screen(ExportScreen(self._subject))

    def action_column(self) -> None:
        """Show the next split."""
        names = list(COLUMNS)
        self._column = names[(names.index(self._column) + 1) % len(names)]
        self.redraw()

    def action_back(self) -> None:
        """Go back to the scoreboard."""
        self.app.pop_screen()

    def _lines(self, found: Behind, width: int) -> list[Line]:
        if self._as_plots:
            return plot_lines.lines(found.plots, width, self.app.signs)
        return experiment_lines.lines(found, self._column, found.prices, width, self.app.signs)

    def _take(self, found: Behind | Problem) -> None:
        self._found = found
        self.redraw()
