"""One dataset in full, on a screen of its own: every step, sum and file, what it takes, and its log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.widget import Widget

from competitions.model import Edition
from console.actions import datasets
from console.actions.action import Action
from console.screens.data_detail import Room, detail_lines
from console.screens.data_lines import ACCESS_ROLES, STATE_ROLES, size_text, state_sign
from console.tui.keys import bindings, shown_key
from console.tui.painting import (
    Line,
    Pieces,
    cut,
    foreign,
)
from console.tui.screen import ConsoleScreen
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views.dataset_board import DatasetBoard, DatasetRow, dataset_board
from console.views.dataset_detail import DatasetDetail, dataset_detail
from console.views.rates import Pace, Rates
from state.database import Database

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_ALL, _TEXT_LINES = 1000, 10


class DatasetScreen(ConsoleScreen):
    """A dataset's detail, as long as it is."""

    CONTEXTS = ("dataset", "list")
    MODE = "data"
    BINDINGS = bindings("dataset")

    def __init__(self, competition_id: str, edition: Edition) -> None:
        super().__init__()
        self._competition_id = competition_id
        self._edition = edition
        self._row: DatasetRow | None = None
        self._detail: DatasetDetail | None = None
        self._rates = Rates()
        self._paces: dict[str, Pace] = {}

    def body(self) -> Iterable[Widget]:
        """Name and state, then everything."""
        yield Painted(id="header")
        yield LineList(id="dataset")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Its row, and what lies on the disk."""
        data_dir = self.app.places.data_dir
        detail = dataset_detail(data_dir, self._competition_id, self._edition)
        return {"datasets": (dataset_board(data_dir), self._take), "detail": (detail, self._take_detail)}

    def redraw_every(self) -> float:
        """Rates and what is left change without anything happening in the state."""
        return 1.0

    def redraw(self) -> None:
        """Draw everything that is known of it."""
        row = self._row
        if row is None:
            return
        header = self.query_one("#header", Painted)
        header.show(_title(row, self.size.width, state_sign(row.state, self.app.signs)))
        lines = self.query_one("#dataset", LineList)
        width = lines.scrollable_content_region.width or self.size.width
        keys = shown_key(self.app.settings.keys, ascii_only=self.app.settings.ascii_only)
        room = Room(width, self.app.signs, keys, _ALL, _ALL, _ALL, _TEXT_LINES)
        found = detail_lines(row, self._detail, self._paces, room)
        lines.show([Line(pieces, key=place, selectable=True) for place, pieces in enumerate(found)])

    def action_act(self, what: str) -> None:
        """Do something with this dataset."""
        act(self.app, what, [self._row] if self._row is not None else [])

    def action_copy_folder(self) -> None:
        """Copy where it lies."""
        if self._detail is not None:
            self.app.copy_path(self._detail.folder)

    def action_back(self) -> None:
        """Go back to the list."""
        self.app.pop_screen()

    def _take(self, board: DatasetBoard) -> None:
        key = (self._competition_id, self._edition)
        self._row = next((row for row in board.rows if row.key == key), None)
        step = self._row.step if self._row is not None else None
        self._paces = {}
        if step is not None:
            self._paces[step.name] = self._rates.see(
                step.name, step.done, step.total, self.app.frame_state().now
            )
        self.redraw()

    def _take_detail(self, detail: DatasetDetail | None) -> None:
        self._detail = detail
        self.redraw()


def _title(row: DatasetRow, width: int, sign: str) -> Pieces:
    return cut(
        (
            (f" {foreign(row.competition_id, 60).rstrip()}", "strong"),
            (f"   edition {foreign(row.edition, 12).rstrip()}   ", "dim"),
            (f"{sign} {row.state}", STATE_ROLES[row.state]),
            (f"   {size_text(row)}   Kaggle: ", "dim"),
            (row.access.value, ACCESS_ROLES[row.access]),
        ),
        width,
    )


_PLANS: dict[str, Callable[[Sequence[DatasetRow]], Action]] = {
    "prepare": datasets.prepare,
    "retry": datasets.retry,
    "check": datasets.check,
    "stop": datasets.stop,
    "verify": datasets.verify,
}


def act(app: ConsoleApp, what: str, chosen: Sequence[DatasetRow]) -> None:
    """Do what a key says with datasets."""
    if what in _PLANS:
        app.act(_PLANS[what], chosen)
    elif what == "copy_urls":
        urls = datasets.rules_urls(chosen)
        if urls:
            app.copy_to_clipboard("\n".join(urls))
            app.say(f"copied {urls[0]}" if len(urls) == 1 else f"copied {len(urls)} addresses, one a line")
    else:
        plan = partial(datasets.prune, chosen, app.places.data_dir, everything=what == "prune_all")
        app.in_background(plan, app.carry_out)
