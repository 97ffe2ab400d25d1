"""The `:` command line: one line at the bottom that completes, does, and goes away."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from competitions import registry
from console.tui.commands import completions, execute
from console.tui.widgets.painted import Painted
from console.tui.widgets.typing_line import TypingLine

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp


class CommandLine(Widget):
    """Takes one command; Tab or → completes, ↑ brings back the last one, Esc leaves."""

    DEFAULT_CSS = "CommandLine { height: 1; dock: bottom; layout: horizontal; layer: overlay; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("up", "recall", "recall", show=False),
    ]
    app: ConsoleApp
    _last = ""

    def __init__(self, text: str = "") -> None:
        super().__init__(id="command", classes="prompt -open")
        self._text = text

    def compose(self) -> ComposeResult:
        """The sign and the field."""
        yield Painted(classes="prompt-sign")
        known = completions(self.app.known_sweeps, registry.all_ids())
        suggester = SuggestFromList(known, case_sensitive=False)
        yield TypingLine(self._text, suggester=suggester, select_on_focus=False)

    def on_mount(self) -> None:
        """Take what is typed."""
        self.query_one(Painted).show(((" : ", "accent"),))
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do it."""
        event.stop()
        text = event.value.strip()
        self.remove()
        if text:
            CommandLine._last = text
            execute(self.app, text)

    def on_input_blurred(self, event: Input.Blurred) -> None:
        """Go away when something else is chosen."""
        event.stop()
        self.remove()

    def action_leave(self) -> None:
        """Go away."""
        self.remove()

    def action_complete(self) -> None:
        """Take the suggestion."""
        field = self.query_one(Input)
        if not field.cursor_at_end:
            field.action_end()
        else:
            field.action_cursor_right()

    def action_recall(self) -> None:
        """Bring back the last command."""
        self.query_one(Input).value = CommandLine._last
