"""Screens that show one list: plainly, with a filter of plain words, and with marks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from textual.containers import Horizontal
from textual.widget import Widget

from console.tui.painting import Piece, Pieces, cut
from console.tui.screen import ConsoleScreen, Queries, Query
from console.tui.session import SessionValues
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views.lists import Key, Marks

if TYPE_CHECKING:
    from textual import events
    from textual.timer import Timer

# The name of the query for the pane beside a list, and of what is kept of it.
_DETAIL = "detail"
# From how many columns on there is room beside most lists, and how many the pane has.
_DETAIL_FROM = 150
_DETAIL_WIDTHS = (50, 84)
# Less than anybody notices, and more than lies between two keys that a held-down key sends.
_SETTLES_SECONDS = 0.12


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
        yield Prompt("/", self.FILTER_HINT, id="filter", done="keep the filter")

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

    def filter_by(self, words: str) -> None:
        """Filter by these words."""
        self.words = words
        self.redraw()

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one("#filter", Prompt).open(self.words)

    def action_back(self) -> None:
        """Take the filter away."""
        self.words = ""
        self.redraw()


class DetailedScreen(FilteredScreen):
    """A list that has, in a wide terminal, more beside it about what is under the cursor.

    What is asked for the pane follows the cursor once that stands still for a moment: a key that is held down asks for
    nothing on its way.
    """

    # How many columns the list itself likes to have; the pane has what is left, within its bounds.
    LIST_WIDTH: ClassVar[int] = 128

    def __init__(self) -> None:
        super().__init__()
        self._wants_detail = True
        # What the cursor stands on, and what has been asked for.
        self._detail_of: Hashable = None
        self._asked_of: Hashable = None
        self._settling: Timer | None = None

    def detail_key(self) -> Hashable:
        """Return what the pane is to be about; None where there is nothing."""
        raise NotImplementedError

    def detail_query(self, key: Any) -> Query:
        """Return what the state is asked for the pane, and who takes the answer."""
        raise NotImplementedError

    def detail_lines(self, width: int, height: int) -> Iterable[Pieces]:
        """Return what the pane shows; what goes beyond its height is cut."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        """Return the widgets of the screen, the pane beside the list."""
        for widget in super().body():
            is_list = isinstance(widget, LineList)
            yield Horizontal(widget, Painted(id="detail"), id="beside") if is_list else widget

    def queries(self) -> Queries:
        """Return what the pane shows of where the cursor stood still."""
        if self._asked_of is None or not self.asks_for_detail:
            return {}
        return {_DETAIL: self.detail_query(self._asked_of)}

    def session_values(self) -> SessionValues:
        """Return the filter, and whether the pane is hidden."""
        return {**super().session_values(), _DETAIL: "" if self._wants_detail else "hidden"}

    def restore(self, values: SessionValues) -> None:
        """Show the screen as the last time."""
        super().restore(values)
        self._wants_detail = values.get(_DETAIL) != "hidden"

    @property
    def detail_from(self) -> int:
        """From how many columns on there is room for the pane."""
        return _DETAIL_FROM

    @property
    def has_detail(self) -> bool:
        """Whether the pane is there."""
        return self._wants_detail and self.size.width >= self.detail_from

    @property
    def asks_for_detail(self) -> bool:
        """Whether more is asked about what is under the cursor."""
        return self.has_detail

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002 Textual calls that of the base class too
        """Make room for the pane, or take it away."""
        self.place_detail()

    def on_line_list_cursor_moved(self) -> None:
        """Follow the cursor."""
        self.draw_detail()

    def action_detail(self) -> None:
        """Hide the pane, or show it again."""
        if self.size.width < self.detail_from:
            self.app.say(f"details are shown beside this list from {self.detail_from} columns on")
            return
        self._wants_detail = not self._wants_detail
        self.place_detail()
        self.query_again(_DETAIL)
        self.call_after_refresh(self.draw)

    def draw_answer(self, name: str) -> None:
        """Draw the pane alone if it was asked for, or else everything."""
        if name == _DETAIL:
            self.draw_detail()
        else:
            super().draw_answer(name)

    def draw_detail(self) -> None:
        """Draw the pane, and ask for what it shows once the cursor has stood still; `redraw` ends with it."""
        key = self.detail_key()
        if key != self._detail_of and self.asks_for_detail:
            self._detail_of = key
            if self._settling is not None:
                self._settling.stop()
            self._settling = self.set_timer(_SETTLES_SECONDS, self._ask_for_detail)
        if not self.has_detail:
            return
        pane = self.query_one("#detail", Painted)
        width, height = pane.size.width - 2, pane.size.height
        lines = [] if key is None or width < 1 else list(self.detail_lines(width, height))[:height]
        lines += [()] * (height - len(lines))
        rule: Piece = (f"{self.app.signs.axis} ", "faint")
        pane.show(*((rule, *cut(line, width)) for line in lines))

    @property
    def is_settled(self) -> bool:
        """Whether what the cursor stands on is what was asked for."""
        return self._asked_of == self._detail_of

    def _ask_for_detail(self) -> None:
        self._asked_of = self._detail_of
        self.query_again(_DETAIL)

    def place_detail(self) -> None:
        """Show the pane, or hide it, as there is room and the operator wants."""
        pane = self.query_one("#detail", Painted)
        narrowest, widest = _DETAIL_WIDTHS
        pane.styles.width = min(widest, max(narrowest, self.size.width - self.LIST_WIDTH))
        pane.display = self.has_detail


class DescribedScreen(FilteredScreen):
    """A filtered list over lines about what is under the cursor."""

    def body(self) -> Iterable[Widget]:
        """Return the lines over the list, the list, the lines under it, and where the filter is typed."""
        header, lines, prompt = super().body()
        return header, lines, Painted(id="about"), prompt

    @property
    def about(self) -> Painted:
        """The lines about what is under the cursor."""
        return self.query_one("#about", Painted)


class MarkedScreen(DescribedScreen, Generic[Key]):
    """A filtered list whose `redraw` shows which keys have `marks`, over lines about what is under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: Marks[Key] = Marks()

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
