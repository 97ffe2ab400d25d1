"""The host screen: the machine, who uses what of it, and what fills its disks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.widget import Widget

from console.screens import host_lines
from console.tui.keys import bindings
from console.tui.screen import ConsoleScreen
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views.host import HostUse, host_use
from state.database import Database


class HostScreen(ConsoleScreen):
    """Facts on top, then the runs by what they use."""

    CONTEXTS = ("host", "list")
    MODE = "host"
    REMEMBERED_AS = "host"
    BINDINGS = bindings("host")

    def __init__(self) -> None:
        super().__init__()
        self._use = HostUse()

    def body(self) -> Iterable[Widget]:
        """The machine, the runs."""
        yield Painted(id="header")
        yield LineList(id="users")

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """Who uses what."""
        return {"use": (lambda database: host_use(database, self.app.now()), self._take)}

    def beat(self) -> None:
        """Measure again: samples come without a change of the state."""
        super().beat()
        self.ask_again()

    def redraw(self) -> None:
        """Draw the machine as it is now."""
        users = self.query_one("#users", LineList)
        width = users.scrollable_content_region.width or self.size.width
        engine, now, signs = self.app.engine, self.app.now(), self.app.signs
        self.query_one("#header", Painted).show(*host_lines.facts(engine, now, self.size.width, signs))
        users.show(host_lines.lines(self._use, width, users.size.height, now, signs))

    def on_line_list_opened(self) -> None:
        """Open the run under the cursor."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run under the cursor, on what it uses."""
        key = self.query_one(LineList).key
        if isinstance(key, int):
            self.app.show_run(key, pane="resources")

    def _take(self, use: HostUse) -> None:
        self._use = use
        self.redraw()
