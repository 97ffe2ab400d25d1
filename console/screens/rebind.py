"""Asking for a key: the one that is pressed is taken, unless it does something else there already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.tui.keys import TABLE, rebound, shadowed, shown
from console.tui.painting import Pieces
from console.tui.widgets.painted import Painted
from foundation.problems import Problem

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_LEAVES = "escape"


class RebindScreen(ModalScreen[str | None]):
    """Takes one key; one that hides another is taken when it is pressed a second time."""

    app: ConsoleApp

    def __init__(self, name: str) -> None:
        super().__init__()
        self._key = next(key for key in TABLE if key.id == name)
        self._told = ""
        self._pressed = ""

    def compose(self) -> ComposeResult:
        """One box with the question."""
        with Vertical(id="box") as box:
            box.border_title = f"Key for {self._key.id}"
            yield Painted(id="question")

    def on_mount(self) -> None:
        """Ask."""
        self._draw()

    def on_key(self, event: events.Key) -> None:
        """Take the key that is pressed."""
        event.stop()
        event.prevent_default()
        if event.key == _LEAVES:
            self.dismiss(None)
            return
        changes = {key.id: ",".join(key.keys) for key in self.app.settings.keys.keys} | {
            self._key.id: event.key
        }
        name = shown(event.key, ascii_only=self.app.settings.ascii_only)
        try:
            table = rebound(changes)
        except Problem as problem:
            self._told, self._pressed = problem.what, ""
        else:
            hidden = shadowed(table, self._key.id)
            if not hidden or self._pressed == event.key:
                self.dismiss(event.key)
                return
            self._pressed = event.key
            self._told = (
                f"{name} would hide '{', '.join(hidden)}' there: press it again to take it all the same"
            )
        self._draw()

    def _draw(self) -> None:
        ask: Pieces = ((self._key.help, "strong"),)
        now = " ".join(shown(key) for key in self.app.settings.keys.named(self._key.id).keys)
        lines: list[Pieces] = [ask, (("now ", "dim"), (now, "accent")), ()]
        if self._told:
            lines += [((self._told, "warn"),), ()]
        leave = shown(_LEAVES, ascii_only=self.app.settings.ascii_only)
        lines.append((("press the new key", "text"), (f"   {leave} leaves it as it is", "dim")))
        self.query_one("#question", Painted).show(*lines)
