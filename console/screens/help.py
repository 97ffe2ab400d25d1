"""The keys of the screen one comes from, made from the table of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from console.tui.keys import Context, key_name
from console.tui.painting import Pieces
from console.tui.widgets.painted import Painted

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

TITLES: dict[str, str] = {
    "app": "Everywhere",
    "list": "In lists",
    "matrix": "In the matrix",
    "log": "In a log",
    "file": "File",
    "merged": "Merged logs",
    "overview": "Overview",
    "sweep": "Sweep",
    "run": "Run",
    "data": "Data",
    "grade": "Grade",
    "board": "Board",
    "experiment": "One experiment",
    "compare": "Comparing",
    "export": "Exporting",
    "host": "Host",
    "launch": "Launch",
    "events": "Events",
    "settings": "Settings",
    "welcome": "Welcome",
    "confirm": "Confirmation",
    "classify": "Correcting a class",
}


class HelpScreen(ModalScreen[None]):
    """An overlay with every key that works on the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,enter", "dismiss", "close", show=False)
    ]
    app: ConsoleApp

    def __init__(self, contexts: tuple[Context, ...]) -> None:
        super().__init__()
        self._contexts = contexts

    def compose(self) -> ComposeResult:
        """One scrollable box."""
        with VerticalScroll(id="box") as box:
            box.border_title = "Keys"
            box.border_subtitle = "esc closes"
            yield Painted(id="keys")

    def on_mount(self) -> None:
        """Fill in the keys."""
        self.query_one("#keys", Painted).show(*self._lines())

    def _lines(self) -> list[Pieces]:
        lines: list[Pieces] = []
        for context in (*self._contexts, "app"):
            keys = self.app.settings.keys.of(context)
            if not keys:
                continue
            lines += [(), ((TITLES[context], "strong"),)] if lines else [((TITLES[context], "strong"),)]
            for key in keys:
                names = " ".join(key_name(name, ascii_only=self.app.settings.ascii_only) for name in key.keys)
                inert = key.changes and self.app.readonly
                lines.append(((f"  {names:<16}", "accent"), (key.help, "faint" if inert else "text")))
        return lines
