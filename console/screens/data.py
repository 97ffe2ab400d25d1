"""The datasets screen: which data are there, which are being prepared, and asking for more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.widget import Widget

from competitions.model import edition_named
from console.screens import data_lines
from console.screens.data_detail import Room, detail_lines
from console.screens.data_lines import View
from console.screens.dataset import act
from console.tui.keys import bindings, shown_key
from console.tui.list_screen import MarkedScreen
from console.tui.painting import foreign, heading
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views.dataset_board import DatasetBoard, DatasetRow, dataset_board
from console.views.dataset_detail import DatasetDetail, dataset_detail
from console.views.dataset_totals import needs, totals
from console.views.rates import Pace, Rates
from engine.datasets.sources import DOWNLOAD
from state.database import Database
from state.records import StepState

_ROOM_FOR_DETAIL = 28
_SUMS, _FILES, _EVENTS, _TEXT_LINES = 3, 3, 3, 2

RowKey = tuple[str, str]


class DataScreen(MarkedScreen[RowKey]):
    """A list of every competition's data with marks, and beside it, or instead of it, one of them in detail."""

    CONTEXTS = ("data", "list")
    MODE = "data"
    REMEMBERED_AS = "data"
    BINDINGS = bindings("data")

    def __init__(self) -> None:
        super().__init__()
        self._board = DatasetBoard()
        self._about: RowKey | None = None
        self._detail: DatasetDetail | None = None
        self._rates = Rates()
        self._paces: dict[tuple[str, str, str], Pace] = {}

    def body(self) -> Iterable[Widget]:
        """Header, filter, list, what to do about the one under the cursor, its detail."""
        yield Painted(id="header")
        yield Painted(id="filter-line")
        yield LineList(id="datasets")
        yield Painted(id="about")
        yield Painted(id="detail")
        yield Prompt("/", "words of name, split, state, edition or access, ! negates", id="filter")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Every dataset, and more of the one under the cursor."""
        data_dir = self.app.places.data_dir
        asked: dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]] = {
            "datasets": (dataset_board(data_dir), self._take)
        }
        row = self._row()
        if row is not None:
            look = dataset_detail(data_dir, row.competition_id, edition_named(row.edition))
            asked["detail"] = (look, self._take_detail)
        return asked

    def redraw_every(self) -> float:
        """Rates and what is left change without anything happening in the state."""
        return 1.0

    def redraw(self) -> None:
        """Draw the list."""
        rows, free = self.query_one("#datasets", LineList), self._free()
        view = self._view(rows.scrollable_content_region.width or self.size.width)
        downloading = sum(pace.rate or 0 for key, pace in self._paces.items() if key[2] == DOWNLOAD)
        found = totals(self._board, free=free, download_rate=downloading or None)
        header = data_lines.header(self._board.rows, found, self.app.signs, self.size.width)
        self.query_one("#header", Painted).show(*header)
        shown = self._shown()
        needed = needs(self._chosen(), free) if self.marks else None
        line = data_lines.filter_line(view, len(shown), len(self._board.rows), needed)
        self.query_one("#filter-line", Painted).show(*line)
        rows.show(data_lines.lines(shown, view))
        self._draw_detail()

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        """Tell of the dataset under the cursor."""
        message.stop()
        self._draw_detail()

    def on_line_list_opened(self, message: LineList.Opened) -> None:
        """Show everything of the dataset under the cursor."""
        message.stop()
        self.action_open()

    def action_open(self) -> None:
        """Show everything of the dataset under the cursor."""
        from console.screens.dataset import DatasetScreen

        row = self._row()
        if row is not None:
            self.app.push_screen(DatasetScreen(row.competition_id, edition_named(row.edition)))

    def action_mark(self) -> None:
        """Mark the dataset under the cursor, or take the mark away."""
        row = self._row()
        if row is not None:
            self.mark(self.marks.turned(row.key))

    def action_mark_range(self) -> None:
        """Mark everything between the dataset that was marked last and the one under the cursor."""
        row, keys, anchor = self._row(), [each.key for each in self._shown()], self.marks.anchor
        if row is None or anchor not in keys:
            self.mark_more(None)
            return
        first, last = sorted((keys.index(anchor), keys.index(row.key)))
        self.mark_more(keys[first : last + 1])

    def action_mark_all(self) -> None:
        """Mark everything that is shown, or take those marks away."""
        self.mark(self.marks.all_turned(row.key for row in self._shown()))

    def action_act(self, what: str) -> None:
        """Do something with the marked datasets, or with the one under the cursor."""
        act(self.app, what, self._chosen())

    def action_copy_folder(self) -> None:
        """Copy where the dataset under the cursor lies."""
        if self._detail is not None:
            self.app.copy_path(self._detail.folder)

    def _view(self, width: int) -> View:
        return View(width, self.app.signs, self.words, self.marks.keys, self._paces)

    def _free(self) -> int | None:
        """What is free on the data's disk: the engine looks now and then, the question when something changes."""
        engine = self.app.engine
        return engine.data_disk_free if engine is not None and engine.running else self._board.free

    def _shown(self) -> list[DatasetRow]:
        return data_lines.accepted(self._board.rows, self.words)

    def _row(self) -> DatasetRow | None:
        key = self.query_one(LineList).key if self.is_whole() else None
        return next((row for row in self._board.rows if row.key == key), None)

    def _chosen(self) -> list[DatasetRow]:
        if self.marks:
            return [row for row in self._board.rows if row.key in self.marks]
        row = self._row()
        return [] if row is None else [row]

    def _draw_detail(self) -> None:
        row, width = self._row(), self.size.width
        key = None if row is None else row.key
        if key != self._about:  # moved, or moved by a filter
            self._about, self._detail = key, None
            self.ask_again()
        keys = shown_key(self.app.settings.keys, ascii_only=self.app.settings.ascii_only)
        about, pane = self.query_one("#about", Painted), self.query_one("#detail", Painted)
        pane.display = self.size.height >= _ROOM_FOR_DETAIL
        about.display = not pane.display
        if not pane.display:
            about.show(data_lines.about(row, keys, width))
            return
        if row is None:
            pane.show()
            return
        paces = {key[2]: pace for key, pace in self._paces.items() if key[:2] == row.key}
        title = heading(foreign(row.competition_id, width).strip(), width, self.app.signs)
        room = Room(width, self.app.signs, keys, _SUMS, _FILES, _EVENTS, _TEXT_LINES)
        pane.show(title, *detail_lines(row, self._detail, paces, room))

    def _measure(self) -> None:
        """See how fast everything goes that is going on."""
        going = {
            (*row.key, row.step.name): row.step
            for row in self._board.rows
            if row.step is not None and row.step.state is StepState.WORKING
        }
        now = self.app.frame_state().now
        self._paces = {key: self._rates.see(key, step.done, step.total, now) for key, step in going.items()}
        self._rates.forget_others(set(going))

    def _take(self, board: DatasetBoard) -> None:
        self._board = board
        self.marks = self.marks.among(row.key for row in board.rows)
        self._measure()
        self.redraw()

    def _take_detail(self, detail: DatasetDetail | None) -> None:
        self._detail = detail
        self._draw_detail()
