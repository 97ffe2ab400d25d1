"""The scoreboard screen: own and imported experiments among the published rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.widget import Widget

from console.screens import board_lines
from console.screens.board_lines import Look
from console.tui.keys import bindings
from console.tui.list_screen import FilteredScreen
from console.tui.painting import Pieces, foreign
from console.tui.session import Remembered
from console.tui.widgets.heading import Heading
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.line_list import LineList, TitleClicked
from console.tui.widgets.painted import Painted
from console.views.scoreboard import (
    Scoreboard,
    Subject,
    scoreboard,
    subject_of,
)
from console.views.sorting import Sorting
from engine.scoreboard import COLUMNS, Row, published_rows
from state.database import Database

_MOST_MARKED = 2


class BoardScreen(FilteredScreen):
    """A sorted table of rows; what covers a split only in part says how much of it, and no number."""

    CONTEXTS = ("board", "list", "matrix")
    MODE = "board"
    REMEMBERED_AS = "board"
    BINDINGS = bindings("board")

    def __init__(self) -> None:
        super().__init__()
        # Without a state there are still the rows that come with the program.
        self._board = Scoreboard(published_rows())
        self._was_read = False
        self._sorting = Sorting("all")
        self._marked: tuple[Subject, ...] = ()
        self._pad = False

    def body(self) -> Iterable[Widget]:
        """Own rows in short, the heading, the table."""
        yield Painted(id="header")
        yield Heading(id="columns")
        yield LineList(id="rows")
        yield Prompt("/", "words that must all be in a row, !word must not", id="filter")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """All rows."""
        pad = self._pad
        return {"rows": (lambda database: scoreboard(database, pad_missing=pad), self._take)}

    def remembered(self) -> Remembered:
        """How the table is looked at."""
        turned = "yes" if self._sorting.turned else ""
        return {**super().remembered(), "column": self._sorting.by, "turned": turned}

    def recall(self, values: Remembered) -> None:
        """Look at the table as the last time."""
        super().recall(values)
        if values.get("column") in board_lines.SORTS:
            self._sorting = Sorting(values["column"], bool(values.get("turned")))
        self._was_read = "cursor" in values

    def redraw(self) -> None:
        """Draw the table in its order."""
        rows = self.query_one("#rows", LineList)
        signs = self.app.signs
        width = rows.scrollable_content_region.width or self.size.width
        longest = board_lines.longest_label(self._board.rows)
        look = Look(self._sorting, width, signs, longest, self.words, frozenset(self._marked))
        summary = board_lines.summary(self._board.rows, self.size.width, signs)
        told = self._told(self.size.width)
        self.query_one("#header", Painted).show(*summary, *told, *(((),) if summary or told else ()))
        self.query_one("#columns", Heading).show_line(board_lines.titles(look))
        rows.show(board_lines.lines(self._board.rows, look))

    def on_title_clicked(self, message: TitleClicked) -> None:
        """Sort by the column whose name was clicked on; by it already: turn the order round."""
        self._sort(self._sorting.chosen(message.by))

    def on_line_list_opened(self) -> None:
        """Show what lies behind the row."""
        self.action_open()

    def action_open(self) -> None:
        """Show what lies behind the cell under the cursor."""
        from console.screens.experiment import ExperimentScreen

        subject = self._with_runs()
        if subject is not None:
            column = self._column()
            self.app.push_screen(ExperimentScreen(subject, column=column if column in COLUMNS else "all"))

    def action_sort(self) -> None:
        """Sort by the column under the cursor; by it already: turn the order round."""
        self._sort(self._sorting.chosen(self._column()))

    def action_turn(self) -> None:
        """Turn the order round."""
        self._sort(self._sorting.round())

    def action_pad(self) -> None:
        """Count what is lost or missing as no medal, or leave its seeds out."""
        self._pad = not self._pad
        self.ask_again()

    def action_mark(self) -> None:
        """Mark the row, or take the mark away; of two marks the older one goes."""
        subject = self._with_runs()
        if subject is None:
            return
        if subject in self._marked:
            self._marked = tuple(each for each in self._marked if each != subject)
        else:
            self._marked = (*self._marked, subject)[-_MOST_MARKED:]
        self.redraw()

    def action_compare(self) -> None:
        """Compare the two marked rows, or the marked one with the one under the cursor."""
        from console.screens.compare import CompareScreen

        chosen = self._marked
        if len(chosen) < _MOST_MARKED:
            here = self._with_runs()
            if here is None:
                return
            chosen = tuple(dict.fromkeys((*chosen, here)))
        if len(chosen) < _MOST_MARKED:
            self.app.say("mark one experiment with space, then compare on another")
            return
        self.app.push_screen(CompareScreen(chosen[0], chosen[1]))

    def action_export(self) -> None:
        """Preview the row as it would be handed on."""
        from console.screens.export import ExportScreen

        subject = self._with_runs()
        if subject is not None:
            self.app.push_screen(ExportScreen(subject, pad_missing=self._pad))

    def action_back(self) -> None:
        """Take the marks away, then the filter."""
        if not self._marked:
            super().action_back()
            return
        self._marked = ()
        self.redraw()

    def _sort(self, sorting: Sorting[str]) -> None:
        self._sorting = sorting
        self.redraw()

    def _told(self, width: int) -> tuple[Pieces, ...]:
        lines: list[Pieces] = [
            ((f" {foreign(text, width - 2).rstrip()}", "bad"),) for text in self._board.problems
        ]
        if self.words:
            lines.append(((" / ", "accent"), (foreign(self.words, 60).rstrip(), "text")))
        if self._pad:
            lines.append(((" padded: what is lost or missing counts as no medal", "warn"),))
        return tuple(lines)

    def _take(self, board: Scoreboard) -> None:
        self._board = board
        self.redraw()
        if not self._was_read:
            # The cursor has stayed with a published row, which is not what one has come for.
            self._was_read = True
            self.query_one("#rows", LineList).action_edge(-1)

    def _column(self) -> str:
        rows = self.query_one("#rows", LineList)
        shown = board_lines.columns_shown(
            rows.scrollable_content_region.width or self.size.width, self._board.rows
        )
        return shown[min(rows.column, len(shown) - 1)]

    def _row(self) -> Row | None:
        key = self.query_one("#rows", LineList).key
        return next((row for row in self._board.rows if board_lines.key_of(row) == key), None)

    def _with_runs(self) -> Subject | None:
        row = self._row()
        if row is None:
            return None
        subject = subject_of(row)
        if not subject.has_runs:
            self.app.say("of a published row only its numbers are known; import its reports to see more")
            return None
        return subject
