"""The datasets screen: which data are there, which are being prepared, and asking for more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.widget import Widget

from console.keys import bindings
from console.model.dataset_board import DatasetRow, dataset_board
from console.painting import Pieces, foreign
from console.screens import data_lines
from console.screens.base import ConsoleScreen
from console.widgets.line_list import LineList
from console.widgets.painted import Painted
from console.widgets.prompt import Prompt
from state.database import Database


class DataScreen(ConsoleScreen):
    """A list of every competition's data."""

    CONTEXTS = ("data", "list")
    MODE = "data"
    BINDINGS = bindings("data")

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[DatasetRow, ...] = ()
        self._filter = ""

    def body(self) -> Iterable[Widget]:
        """Header, filter, list."""
        yield Painted(id="header")
        yield Painted(id="filter-line")
        yield LineList(id="datasets")
        yield Prompt("/", "words of name, split or state, ! negates", id="filter")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Every dataset."""
        return {"datasets": (dataset_board, self._take)}

    def redraw(self) -> None:
        """Draw the list."""
        rows = self.query_one("#datasets", LineList)
        width = rows.scrollable_content_region.width or self.size.width
        self.query_one("#header", Painted).show(
            data_lines.header(self._rows, self.app.signs, self.size.width)
        )
        shown = foreign(self._filter, 60).rstrip()
        line: Pieces = ((" / ", "accent"), (shown, "text"))
        self.query_one("#filter-line", Painted).show(*((line,) if shown else ()))
        rows.show(data_lines.lines(self._rows, self._filter, width, self.app.signs))

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Filter while typing."""
        self._set_filter(message.value)

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Keep the filter."""
        self._set_filter(message.value)
        self.query_one(LineList).focus()

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """Take back what was typed."""
        self.on_prompt_done(Prompt.Done(message.prompt, message.value))

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one("#filter", Prompt).open(self._filter)

    def action_back(self) -> None:
        """Clear the filter."""
        self._set_filter("")

    def action_prepare(self) -> None:
        """Ask for the dataset under the cursor."""
        key = self.query_one(LineList).key
        for row in self._rows:
            if (row.competition_id, row.edition) == key:
                wanted = {"competition_ids": [row.competition_id], "edition": row.edition}
                self.app.ask("dataset.prepare", wanted)

    def _set_filter(self, text: str) -> None:
        self._filter = text.strip()
        self.redraw()

    def _take(self, rows: tuple[DatasetRow, ...]) -> None:
        self._rows = rows
        self.redraw()
