"""A line to type into that opens over a screen's foot: the filter, the search; Esc leaves it as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from console.tui.widgets.painted import Painted
from console.tui.widgets.typing_line import TypingLine

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp


class Prompt(Widget):
    """One line of input behind a sign, hidden until it is opened."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]
    app: ConsoleApp

    @dataclass
    class Changed(Message):
        """Something was typed."""

        prompt: Prompt
        value: str

        @property
        def control(self) -> Prompt:
            """The prompt."""
            return self.prompt

    @dataclass
    class Done(Changed):
        """Enter: this is meant."""

    @dataclass
    class Left(Changed):
        """Esc: what was there before is meant; it is `value`."""

    def __init__(self, sign: str, placeholder: str, *, id: str) -> None:
        super().__init__(id=id, classes="prompt")
        self._sign = sign
        self._placeholder = placeholder
        self._before = ""

    def compose(self) -> ComposeResult:
        """The sign and the field."""
        yield Painted(classes="prompt-sign")
        yield TypingLine(placeholder=self._placeholder, select_on_focus=False)

    def on_mount(self) -> None:
        """Draw the sign."""
        self.query_one(Painted).show(((f" {self._sign} ", "accent"),))

    @property
    def is_open(self) -> bool:
        """Whether it is being typed into."""
        return self.has_class("-open")

    def open(self, text: str) -> None:
        """Let something be typed, beginning with a text."""
        self._before = text
        self.add_class("-open")
        field = self.query_one(Input)
        field.value = text
        field.focus()

    def close(self) -> None:
        """Hide it again."""
        self.remove_class("-open")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell what is typed."""
        event.stop()
        if self.is_open:
            self.post_message(self.Changed(self, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Tell what is meant."""
        event.stop()
        self.close()
        self.post_message(self.Done(self, event.value))

    def action_leave(self) -> None:
        """Tell that nothing is to change."""
        self.close()
        self.post_message(self.Left(self, self._before))
