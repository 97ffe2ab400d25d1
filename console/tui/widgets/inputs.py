"""What is typed into: a field, a field behind its label, a prompt over a screen's foot, and what fields suggest.

The `:` command line, which uses them, is in `console.tui.commands`.
"""

from __future__ import annotations

import os
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

from console.tui.keys import bindings
from console.tui.painting import foreign
from console.tui.threads import in_daemon_thread
from console.tui.widgets.painted import Painted

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

# One cell, so that the cursor stands where it seems to.
_STANDS_FOR_UNPRINTABLE = "?"


class TypingLine(Input):
    """What of its value can't be printed is drawn as a mark; it leans on how the pinned Textual draws."""

    app: ConsoleApp

    def on_mount(self) -> None:
        """Keep the cursor still: a blinking one costs bytes again and again."""
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
        """Suggest nothing that nobody could have typed."""
        return found if found.isprintable() else ""


class Prompt(Widget):
    """One line of input behind a sign, hidden until it is opened.

    Args:
        done: what Enter does, in a word for the footer.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]
    app: ConsoleApp

    @dataclass
    class Toggled(Message):
        """It was opened or closed, so that other keys matter."""

    @dataclass
    class Changed(Message):
        """Something was typed."""

        prompt: Prompt
        value: str

    @dataclass
    class Done(Changed):
        """Enter was pressed."""

    @dataclass
    class Left(Changed):
        """Esc was pressed; `value` is what was there before."""

    def __init__(
        self, sign: str, placeholder: str, *, id: str, done: str, suggester: Suggester | None = None
    ) -> None:
        label = Painted(((f" {sign} ", "accent"),), classes="prompt-sign")
        label.styles.width = cell_len(sign) + 2
        super().__init__(
            label,
            TypingLine(placeholder=placeholder, select_on_focus=False, suggester=suggester),
            id=id,
            classes="prompt",
        )
        self.keys = (("enter", done), *((("right", "complete"),) if suggester else ()), ("escape", "cancel"))
        self._before = ""

    def open(self, text: str) -> None:
        """Let something be typed, beginning with a text."""
        self._before = text
        self.add_class("-open")
        field = self.query_one(Input)
        field.value = text
        field.focus()
        self.post_message(self.Toggled())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Post what is typed."""
        event.stop()
        if self.has_class("-open"):
            self.post_message(self.Changed(self, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Post what was typed."""
        event.stop()
        self._close()
        self.post_message(self.Done(self, event.value))

    def action_leave(self) -> None:
        """Post that nothing is to change."""
        self._close()
        self.post_message(self.Left(self, self._before))

    def _close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Toggled())


class Field(TypingLine):
    """A line to type into, among others: Tab always goes on, another key takes what is suggested."""

    BINDINGS = bindings("field")

    def action_complete(self) -> None:
        """Take the suggestion if there is one, otherwise go to the right."""
        self.action_cursor_right()


_LABEL_WIDTH = 14


class LabelledField(Widget):
    """A field behind its label."""

    DEFAULT_CSS = f"""
    LabelledField {{ height: 1; layout: horizontal; margin-left: 1; }}
    LabelledField > .label {{ width: {_LABEL_WIDTH}; }}
    LabelledField > Input {{ width: 1fr; max-width: 100; }}
    LabelledField > .why {{ display: none; width: auto; max-width: 60%; }}
    LabelledField.-wrong > .why {{ display: block; width: 60%; }}
    """
    app: ConsoleApp

    def __init__(self, label: str, field: Field) -> None:
        self._label = Painted(((label, "dim"),), classes="label")
        self._why = Painted(classes="why")
        self._text = label
        super().__init__(self._label, field, self._why, classes="field")

    def tell(self, why: str) -> None:
        """Say beside the field why it can't be read, if what is typed stays readable there; empty where it can."""
        width = max(10, round(0.6 * self.size.width) - 2)
        shown = why.removeprefix(f"{self._text}: ")
        left = self.size.width - _LABEL_WIDTH - width - 2
        self.set_class(bool(why) and cell_len(self.query_one(Field).value) < left, "-wrong")
        sign = self.app.signs.failed if why else ""
        gap = " " if why and cell_len(self._text) + 2 < _LABEL_WIDTH else ""
        self._label.show(((f"{self._text}{gap}{sign}", "bad" if why else "dim"),))
        self._why.show(
            ((foreign(f" {shown}", width, ellipsis=self.app.signs.ellipsis), "bad"),) if why else ()
        )


class FilePaths(Suggester):
    """Suggests a path, as far as the names on the disk allow."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._is_looking = False

    async def get_suggestion(self, value: str) -> str | None:
        """Complete a path, in a thread: looking a name up may wait for a slow disk, one name at a time."""
        if not value or self._is_looking:
            return None
        self._is_looking = True
        try:
            return await in_daemon_thread(partial(complete_path, value))
        finally:
            self._is_looking = False


# In a folder with more, only so many are compared.
_MOST_NAMES = 5000


def complete_path(typed: str) -> str | None:
    """Return the typed path, completed as far as the names on disk allow, or None if nothing begins so."""
    folder, _, beginning = typed.rpartition("/")
    base = Path(folder + "/" if typed.startswith("/") or folder else ".").expanduser()
    names = _names(base, beginning)
    if not names:
        return None
    # Names are compared letter by letter, which is what is wanted here.
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
