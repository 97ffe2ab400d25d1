"""Screens that show one list: plainly, with a filter of plain words, and with marks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Generic

from textual.widget import Widget

from console.tui.screen import ConsoleScreen
from console.tui.session import SessionValues
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views.lists import Key, Marks


class ListScreen(ConsoleScreen):
    """A screen with some lines over one list."""

    def body(self) -> Iterable[Widget]:
        """Return the lines and the list."""
        yield Painted(id="header")
        yield LineList(id="list")

    @property
    def header(self) -> Painted:
        """The lines over the list."""
        return self.query_one("#header", Painted)

    @property
    def line_list(self) -> LineList:
        """The list."""
        return self.query_one(LineList)


class FilteredScreen(ListScreen):
    """A screen whose `redraw` lets through what `words` accept; `FILTER_HINT` says what may be typed as a filter."""

    FILTER_HINT: ClassVar[str] = "words that must all be in a line, !word must not"

    def __init__(self) -> None:
        super().__init__()
        self.words = ""

    def body(self) -> Iterable[Widget]:
        """Return the lines, the list, and where the filter is typed."""
        yield from super().body()
        yield Prompt("/", self.FILTER_HINT, id="filter")

    def session_values(self) -> SessionValues:
        """Return the filter."""
        return {"filter": self.words}

    def restore(self, values: SessionValues) -> None:
        """Filter as the last time."""
        self.words = values.get("filter", "")

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Filter while typing."""
        self.words = message.value.strip()
        self.redraw()

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Keep the filter."""
        self.on_prompt_changed(message)
        self.line_list.focus()

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """Take back what was typed."""
        self.on_prompt_done(Prompt.Done(message.prompt, message.value))

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one("#filter", Prompt).open(self.words)

    def action_back(self) -> None:
        """Take the filter away."""
        self.words = ""
        self.redraw()


class MarkedScreen(FilteredScreen, Generic[Key]):
    """A filtered list whose `redraw` shows which keys have `marks`, over lines about what is under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: Marks[Key] = Marks()

    def body(self) -> Iterable[Widget]:
        """Return the lines over the list, the list, the lines under it, and where the filter is typed."""
        header, lines, prompt = super().body()
        return header, lines, Painted(id="about"), prompt

    @property
    def about(self) -> Painted:
        """The lines about what is under the cursor."""
        return self.query_one("#about", Painted)

    def mark(self, marks: Marks[Key]) -> None:
        """Show these marks."""
        self.marks = marks
        self.redraw()

    def cursor_key(self) -> Key | None:
        """The key under the cursor."""
        raise NotImplementedError

    def shown_keys(self) -> list[Key]:
        """All keys that the filter lets through, in their order."""
        raise NotImplementedError

    def chosen_keys(self) -> Iterable[Key | None]:
        """What an action is about: what is marked and shown, or without any marks the key under the cursor."""
        return self.marks.keys.intersection(self.shown_keys()) if self.marks else (self.cursor_key(),)

    def all_marks_hidden(self) -> bool:
        """Whether the filter hides everything that is marked, so that an action is about nothing; then it is said."""
        hidden = bool(self.marks) and not self.chosen_keys()
        if hidden:
            self.app.say("the filter hides everything that is marked: clear one of them with Esc")
        return hidden

    def marked_text(self) -> str:
        """How many are marked, and how many of them an action leaves alone because the filter hides them."""
        if not self.marks:
            return ""
        hidden = len(self.marks.keys.difference(self.shown_keys()))
        left_out = f" ({hidden} hidden, left out)" if hidden else ""
        return f"{self.app.signs.marked} {len(self.marks.keys)} marked{left_out}"

    def keys_between(self, one: Key, other: Key) -> Iterable[Key]:
        """The range that two shown keys span."""
        keys = self.shown_keys()
        first, last = sorted((keys.index(one), keys.index(other)))
        return keys[first : last + 1]

    def action_mark(self) -> None:
        """Mark what is under the cursor, or remove the mark."""
        key = self.cursor_key()
        if key is not None:
            self.mark(self.marks.toggled(key))

    def action_mark_range(self) -> None:
        """Mark everything between what was marked last and what is under the cursor."""
        key, anchor = self.cursor_key(), self.marks.anchor
        if key is None or anchor is None or anchor not in self.shown_keys():
            self.app.say("mark one end of the range first")
        else:
            self.mark(self.marks.added(self.keys_between(anchor, key)))

    def action_back(self) -> None:
        """Take the marks away, then the filter."""
        if self.marks:
            self.mark(Marks())
        else:
            super().action_back()
