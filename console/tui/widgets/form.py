"""Lines to type into, one below the other, each behind its name."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget

from console.tui.widgets.painted import Painted
from console.tui.widgets.typing_line import TypingLine


class Field(TypingLine):
    """A line to type into; Tab completes before it goes on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete_or_next", "complete", show=False),
        Binding("down", "app.focus_next", "next", show=False),
        Binding("up", "app.focus_previous", "previous", show=False),
    ]

    def action_complete_or_next(self) -> None:
        """Take the suggestion if there is one, otherwise go to the next field."""
        if self._suggestion and self._suggestion != self.value and self.cursor_at_end:
            self.action_cursor_right()
        else:
            self.screen.focus_next()


class Row(Widget):
    """A field behind its name."""

    DEFAULT_CSS = """
    Row { height: 1; layout: horizontal; margin-left: 1; }
    Row > .label { width: 14; }
    Row > Input { width: 1fr; max-width: 100; }
    """

    def __init__(self, label: str, field: Field) -> None:
        super().__init__(classes="field")
        self._label = label
        self._field = field

    def compose(self) -> ComposeResult:
        """The name and the field."""
        yield Painted(classes="label")
        yield self._field

    def on_mount(self) -> None:
        """Write the name."""
        self.query_one(".label", Painted).show(((self._label, "dim"),))
