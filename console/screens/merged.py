"""Several runs' logs as one, by the time at which each line was printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from textual.widget import Widget

from console.keys import bindings
from console.model import wording
from console.model.merged import MergedLine, Source, merged, sources
from console.painting import Line, foreign
from console.screens.base import ConsoleScreen
from console.theme import Role
from console.widgets.line_list import LineList
from console.widgets.painted import Painted
from state.database import Database

_ROLES: tuple[Role, ...] = ("accent", "good", "bronze", "running", "warn", "gold")


class MergedScreen(ConsoleScreen):
    """A list of lines that grows at its end."""

    CONTEXTS = ("merged", "list")
    MODE = "sweep"
    BINDINGS = bindings("merged")

    def __init__(self, run_ids: Sequence[int]) -> None:
        super().__init__()
        self._run_ids = tuple(run_ids)
        self._sources: tuple[Source, ...] = ()
        self._found: tuple[MergedLine, ...] = ()

    def body(self) -> Iterable[Widget]:
        """What it is, the lines."""
        yield Painted(id="header")
        yield LineList(id="merged")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Where the logs are; a relaunch changes that."""
        return {"sources": (lambda database: sources(database, self._run_ids), self._take_sources)}

    def redraw_every(self) -> float:
        """Logs grow by the second."""
        return 2.0

    def beat(self) -> None:
        """Read on."""
        super().beat()
        self._read()

    def redraw(self) -> None:
        """Draw the lines."""
        title = f" {wording.plural(len(self._sources), 'log')} by time"
        self.query_one("#header", Painted).show(((title, "strong"),))
        shown = self.query_one(LineList)
        at_end = not shown.lines or shown.key == shown.lines[-1].key
        width = shown.scrollable_content_region.width or self.size.width
        shown.show([self._line(each, width) for each in self._found])
        if at_end and self._found:
            shown.action_edge(1)

    def action_back(self) -> None:
        """Go back to the sweep."""
        self.app.pop_screen()

    def _line(self, each: MergedLine, width: int) -> Line:
        label = min(24, width // 4)
        when = wording.clock_seconds(each.at) if each.at else " " * 8
        signs = self.app.signs
        return Line(
            (
                (f" {when} ", "dim"),
                (
                    foreign(self._sources[each.source].label, label, ellipsis=signs.ellipsis) + " ",
                    _ROLES[each.source % len(_ROLES)],
                ),
                (foreign(each.text, max(1, width - label - 12), ellipsis=signs.ellipsis), "text"),
            ),
            key=(each.source, each.start),
            selectable=True,
        )

    def _take_sources(self, found: tuple[Source, ...]) -> None:
        self._sources, self._found = found, ()
        self._read()
        self.draw()

    def _read(self) -> None:
        if self._sources:
            self.app.in_thread(partial(merged, self._sources), partial(self._take, self._sources))

    def _take(self, of: tuple[Source, ...], found: tuple[MergedLine, ...]) -> None:
        if of == self._sources:
            self._found = found
            self.draw()
