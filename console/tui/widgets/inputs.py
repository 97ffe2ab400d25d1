"""Input widgets: fields, fields with a label, the prompt above the footer, and the completion of paths.

The `:` command line, which uses them, is in `console.app.commands`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.console.pieces import foreign
from mlebench_console.console.tui.keys import bindings
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.foundation.threads import in_daemon_thread

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp

# One cell wide, so that the cursor's position is right.
_STANDS_FOR_UNPRINTABLE = "?"


class TypingLine(Input):
    """An input that shows unprintable characters as marks; depends on internals of the pinned Textual."""

    app: BaseApp

    def on_mount(self) -> None:
        """Switch off the blinking of the cursor, which would send bytes all the time."""
        self.cursor_blink = False

    @property
    def _value(self) -> Text:
        mark = self.app.palette.style("mark")
        drawn = Text(no_wrap=True, overflow="ignore", end="")
        for letter in self.value:
            if letter.isprintable():
                drawn.append(letter)
            else:
                drawn.append(_STANDS_FOR_UNPRINTABLE, mark)
        return drawn

    def validate__suggestion(self, found: str) -> str:
        """Drop suggestions with unprintable characters."""
        return found if found.isprintable() else ""


class Prompt(Widget):
    """A line of input after a sign, hidden until it is opened; then the focus goes back to where it was.

    Args:
        take: called with the text at Enter.
        done: what Enter does, in a few words for the footer.
        typed: called with the text after each change.
        left: called at Esc with the text from before it was opened.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]
    app: BaseApp

    @dataclass
    class Toggled(Message):
        """The prompt was opened or closed, so the footer has to show other keys."""

    def __init__(
        self,
        sign: str,
        placeholder: str,
        take: Callable[[str], object],
        *,
        id: str,
        done: str,
        typed: Callable[[str], object] | None = None,
        left: Callable[[str], object] | None = None,
        suggester: Suggester | None = None,
    ) -> None:
        self._label = Painted(classes="prompt-sign")
        super().__init__(
            self._label,
            # The cursor stands before the hint, which would look typed if it stood on its first letter.
            TypingLine(placeholder=f" {placeholder}", select_on_focus=False, suggester=suggester),
            id=id,
            classes="prompt",
        )
        self.keys = (("enter", done), *((("right", "complete"),) if suggester else ()), ("escape", "cancel"))
        self._take, self._typed, self._left = take, typed, left
        self._before = ""
        self._focused_before: Widget | None = None
        self._show_sign(sign)

    def _show_sign(self, sign: str) -> None:
        self._label.show(((f" {sign} ", "accent"),))
        self._label.styles.width = cell_len(sign) + 2

    def open(self, text: str, *, sign: str = "") -> None:
        """Show the prompt with a text to edit, if given after another sign."""
        if sign:
            self._show_sign(sign)
        self._before, self._focused_before = text, self.screen.focused
        self.add_class("-open")
        field = self.query_one(Input)
        field.value = text
        field.focus()
        self.post_message(self.Toggled())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Pass the changed text on."""
        event.stop()
        if self.has_class("-open") and self._typed is not None:
            self._typed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close the prompt and pass its text on."""
        event.stop()
        self._close()
        self._take(event.value)

    def action_leave(self) -> None:
        """Close the prompt and pass on the text from before."""
        self._close()
        if self._left is not None:
            self._left(self._before)

    def _close(self) -> None:
        self.remove_class("-open")
        self.screen.set_focus(self._focused_before)
        self.post_message(self.Toggled())


class Field(TypingLine):
    """A field of a form: Tab always goes to the next field; another key accepts the suggestion."""

    BINDINGS = bindings("field")


_LABEL_WIDTH = 14


class LabelledField(Widget):
    """A field with a label before it and, if its value is wrong, a message beside it."""

    DEFAULT_CSS = """
    LabelledField { height: 1; layout: horizontal; margin-left: 1; }
    LabelledField > Input { width: 1fr; max-width: 100; }
    LabelledField > .why { display: none; width: auto; max-width: 60%; }
    LabelledField.-wrong > .why { display: block; width: 60%; }
    """
    app: BaseApp

    def __init__(self, label: str, field: Field, *, label_width: int = _LABEL_WIDTH) -> None:
        self._label = Painted(((label, "dim"),), classes="label")
        self._label.styles.width = self._label_width = label_width
        self._why = Painted(classes="why")
        self._text = label
        super().__init__(self._label, field, self._why, classes="field")

    def show_problem(self, why: str) -> None:
        """Show beside the field why its value is wrong, if there is room beside the typed text; empty clears it."""
        width = max(10, round(0.6 * self.size.width) - 2)
        left = self.size.width - self._label_width - width - 2
        self.set_class(bool(why) and cell_len(self.query_one(Field).value) < left, "-wrong")
        sign = self.app.signs.failed if why else ""
        gap = " " if why and cell_len(self._text) + 2 < self._label_width else ""
        self._label.show(((f"{self._text}{gap}{sign}", "bad" if why else "dim"),))
        self._why.show(((foreign(f" {why}", width, ellipsis=self.app.signs.ellipsis), "bad"),) if why else ())


class LastWord(Suggester):
    """Completes the last of several typed words by the first known word that begins so."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._known = known

    async def get_suggestion(self, value: str) -> str | None:
        """Return the text with its last word completed."""
        before, space, typed = value.rpartition(" ")
        word = next((word for word in self._known() if typed and word.startswith(typed)), None)
        return None if word is None else f"{before}{space}{word}"


class FilePaths(Suggester):
    """Completes a typed path from the names on the disk, as far as they are unambiguous."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._is_looking = False

    async def get_suggestion(self, value: str) -> str | None:
        """Complete a path in a thread, since the disk may be slow; one lookup at a time."""
        if not value or self._is_looking:
            return None
        self._is_looking = True
        try:
            return await asyncio.wrap_future(in_daemon_thread(partial(complete_path, value)))
        finally:
            self._is_looking = False


# In larger folders only this many names are compared.
_MOST_NAMES = 5000


def complete_path(typed: str) -> str | None:
    """Return the typed path, completed as far as it is unambiguous, or None if no name begins so."""
    folder, _, beginning = typed.rpartition("/")
    base = Path(folder + "/" if typed.startswith("/") or folder else ".").expanduser()
    names = _names(base, beginning)
    if not names:
        return None
    # A common prefix by characters, not by path components, is intended here.
    common = os.path.commonprefix(names)  # noqa: RUF071 see above
    if len(names) == 1 and (base / common).is_dir():
        common += "/"
    completed = f"{folder}/{common}" if "/" in typed else common
    return completed if completed != typed else None


def _names(folder: Path, beginning: str) -> list[str]:
    try:
        with os.scandir(folder) as scan:
            names = [entry.name for _place, entry in zip(range(_MOST_NAMES), scan, strict=False)]
    except OSError:
        return []
    hidden = beginning.startswith(".")
    return [name for name in names if name.startswith(beginning) and (hidden or not name.startswith("."))]
