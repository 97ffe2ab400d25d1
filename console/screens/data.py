"""The datasets screen: which data are there, which are being prepared, and asking for more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textual.widget import Widget

from console.keys import bindings
from console.model.dataset_board import DatasetRow, dataset_board
from console.model.dataset_detail import DatasetDetail, dataset_detail
from console.model.rates import Pace, Rates
from console.painting import Pieces, foreign, heading
from console.screens import data_lines
from console.screens.base import ConsoleScreen
from console.screens.confirm import ConfirmScreen
from console.screens.data_detail import detail_lines
from console.widgets.line_list import LineList
from console.widgets.painted import Painted
from console.widgets.prompt import Prompt
from engine.datasets.pruning import PARTIAL, RAW, ZIP
from engine.datasets.sources import DOWNLOAD
from engine.runs.launching import edition_named
from state.database import Database
from state.records import DatasetState

_ROOM_FOR_DETAIL = 28


class DataScreen(ConsoleScreen):
    """A list of every competition's data."""

    CONTEXTS = ("data", "list")
    MODE = "data"
    BINDINGS = bindings("data")

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[DatasetRow, ...] = ()
        self._filter = ""
        self._about: tuple[str, str] | None = None
        self._detail: DatasetDetail | None = None
        self._rates = Rates()
        self._paces: dict[tuple[str, str, str], Pace] = {}

    def body(self) -> Iterable[Widget]:
        """Header, filter, list."""
        yield Painted(id="header")
        yield Painted(id="filter-line")
        yield LineList(id="datasets")
        yield Painted(id="detail")
        yield Prompt("/", "words of name, split or state, ! negates", id="filter")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Every dataset, and more of the one under the cursor."""
        asked: dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]] = {
            "datasets": (dataset_board, self._take)
        }
        row = self._row()
        if row is not None:
            look = dataset_detail(self.app.places.data_dir, row.competition_id, edition_named(row.edition))
            asked["detail"] = (look, self._take_detail)
        return asked

    def redraw(self) -> None:
        """Draw the list."""
        rows = self.query_one("#datasets", LineList)
        width = rows.scrollable_content_region.width or self.size.width
        self.query_one("#header", Painted).show(
            data_lines.header(self._rows, self._totals(), self.app.signs, self.size.width)
        )
        shown = foreign(self._filter, 60).rstrip()
        line: Pieces = ((" / ", "accent"), (shown, "text"))
        self.query_one("#filter-line", Painted).show(*((line,) if shown else ()))
        rows.show(data_lines.lines(self._rows, self._filter, self._paces, width, self.app.signs))
        self._draw_detail()

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

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        """Tell of the dataset under the cursor."""
        message.stop()
        self._draw_detail()

    def action_prepare(self) -> None:
        """Ask for the dataset under the cursor; one that failed or waits for its rules is tried again."""
        self._ask("dataset.prepare")

    def action_stop(self) -> None:
        """Stop preparing it; what is downloaded stays."""
        self._ask("dataset.stop")

    def action_verify(self) -> None:
        """Compare it with what is known of it."""
        self._ask("dataset.verify")

    def action_prune(self) -> None:
        """Ask whether its zip, raw data and leftovers may go."""
        row = self._row()
        if row is not None:
            text = f"The zip, raw data and leftovers of {row.competition_id}; what is prepared stays."
            lines: tuple[Pieces, ...] = ((("  ", "text"), (foreign(text, 86).rstrip(), "text")),)
            then = partial(self._ask, "dataset.prune", parts=[ZIP, RAW, PARTIAL])
            self.app.confirm(ConfirmScreen("Remove from the disk?", lines, "yes, remove"), then)

    def action_copy(self, what: str) -> None:
        """Copy where its rules are accepted, or where it lies."""
        if self._detail is None:
            return
        if what == "folder":
            self.app.copy_path(self._detail.folder)
        else:
            self.app.copy_to_clipboard(self._detail.rules_url)
            self.app.say(f"copied {self._detail.rules_url}")

    def redraw_every(self) -> float:
        """Rates and what is left change without anything happening in the state."""
        return 1.0

    def _ask(self, kind: str, **more: object) -> None:
        row = self._row()
        if row is not None:
            self.app.ask(kind, {"competition_ids": [row.competition_id], "edition": row.edition, **more})

    def _row(self) -> DatasetRow | None:
        key = self.query_one(LineList).key if self.is_whole() else None
        return next((row for row in self._rows if (row.competition_id, row.edition) == key), None)

    def _totals(self) -> data_lines.Totals:
        to_download = sum(row.bytes_to_download for row in self._rows)
        rate = sum(pace.rate or 0 for key, pace in self._paces.items() if key[2] == DOWNLOAD)
        engine = self.app.engine
        return data_lines.Totals(
            to_download,
            sum(row.dataset.bytes_on_disk or 0 for row in self._rows if row.dataset is not None),
            None if engine is None else engine.data_disk_free,
            to_download / rate if rate else None,
        )

    def _draw_detail(self) -> None:
        row = self._row()
        about = None if row is None else (row.competition_id, row.edition)
        if about != self._about:  # moved, or moved by a filter
            self._about, self._detail = about, None
            self.ask_again()
        width = self.size.width
        pane = self.query_one("#detail", Painted)
        if row is None or self.size.height < _ROOM_FOR_DETAIL:
            pane.show()
            return
        own = (row.competition_id, row.edition)
        paces = {key[2]: pace for key, pace in self._paces.items() if key[:2] == own}
        title = heading(foreign(row.competition_id, width).strip(), width, self.app.signs)
        pane.show(title, *detail_lines(row, self._detail, paces, width, self.app.signs))

    def _measure(self) -> None:
        """See how fast everything goes that is going on."""
        going = {
            (row.competition_id, row.edition, row.step.name): row.step
            for row in self._rows
            if row.state is DatasetState.WORKING and row.step is not None
        }
        now = self.app.situation().now
        self._paces = {key: self._rates.see(key, step.done, step.total, now) for key, step in going.items()}
        self._rates.forget_others(set(going))

    def _set_filter(self, text: str) -> None:
        self._filter = text.strip()
        self.redraw()

    def _take(self, rows: tuple[DatasetRow, ...]) -> None:
        self._rows = rows
        self._measure()
        self.redraw()

    def _take_detail(self, detail: DatasetDetail | None) -> None:
        self._detail = detail
        self._draw_detail()
