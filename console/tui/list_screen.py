"""Base classes of screens that show one list: plain, with a filter, with a detail pane, with marks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from textual.containers import Horizontal
from textual.widget import Widget

from mlebench_console.console.lists import Key, Marks
from mlebench_console.console.tui.screen import ConsoleScreen, Queries, Query
from mlebench_console.console.tui.session import SessionValues
from mlebench_console.console.tui.widgets.blocks import Block
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.painted import Painted

if TYPE_CHECKING:
    from textual import events
    from textual.suggester import Suggester
    from textual.timer import Timer

# The name of the detail pane's query and of its entry in the session.
_DETAIL = "detail"
# The width of the terminal from which most lists have room for the pane, and the least and greatest pane width.
_DETAIL_FROM = 150
_DETAIL_WIDTHS = (50, 84)
# Too short to be noticed, and longer than the interval between the repeats of a held key.
_SETTLES_SECONDS = 0.12


class ListScreen(ConsoleScreen):
    """A screen with one list below some header lines."""

    def body(self) -> Iterable[Widget]:
        """Return the lines and the list."""
        yield Painted(id="header")
        yield LineList(id="list")

    @property
    def header(self) -> Painted:
        """The lines above the list."""
        return self.query_one("#header", Painted)

    @property
    def line_list(self) -> LineList:
        """The list."""
        return self.query_one(LineList)


class FilteredScreen(ListScreen):
    """A screen whose `redraw` filters the list by `words`; `FILTER_HINT` describes the syntax of the filter."""

    FILTER_HINT: ClassVar[str] = "words that must all be in a line, !word must not"

    def __init__(self) -> None:
        super().__init__()
        self.words = ""

    def body(self) -> Iterable[Widget]:
        """Return the header lines, the list and the filter's prompt."""
        yield from super().body()
        yield Prompt(
            "/",
            self.FILTER_HINT,
            self.filter_by,
            id="filter",
            done="keep the filter",
            typed=self.filter_by,
            left=self.filter_by,
            suggester=self.filter_suggester(),
        )

    def filter_suggester(self) -> Suggester | None:
        """Return what completes a typed filter; None if nothing does."""
        return None

    def session_values(self) -> SessionValues:
        """Return the filter."""
        return {"filter": self.words}

    def restore(self, values: SessionValues) -> None:
        """Restore the filter."""
        self.words = values.get("filter", "")

    def filter_by(self, words: str) -> None:
        """Filter by these words; called while they are typed."""
        self.words = words.strip()
        self.redraw()

    def action_filter(self) -> None:
        """Open the filter's prompt."""
        self.query_one("#filter", Prompt).open(self.words)

    def action_back(self) -> None:
        """Clear the filter."""
        self.filter_by("")


class DetailedScreen(FilteredScreen):
    """A list that has, in a wide terminal, a pane beside it with details of the line under the cursor.

    The pane is queried once the cursor has rested for a moment, so that a held key doesn't query every line it passes.
    """

    # The preferred width of the list; the pane has the rest, within its bounds.
    LIST_WIDTH: ClassVar[int] = 128

    def __init__(self) -> None:
        super().__init__()
        self._wants_detail = True
        # The key under the cursor, and the key that was queried.
        self._detail_of: Hashable = None
        self._asked_of: Hashable = None
        self._settling: Timer | None = None

    def detail_key(self) -> Hashable:
        """Return the key of the details for the cursor's line; None if it has none."""
        raise NotImplementedError

    def detail_query(self, key: Any) -> Query:
        """Return the query for the pane."""
        raise NotImplementedError

    def detail(self, height: int) -> Iterable[Block]:
        """Return what is in the pane; lines beyond its height are cut off."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        """Return the widgets of the screen, with the pane beside the list."""
        for widget in super().body():
            is_list = isinstance(widget, LineList)
            yield Horizontal(widget, Painted(id="detail"), id="beside") if is_list else widget

    def queries(self) -> Queries:
        """Return the pane's query for the line on which the cursor has rested."""
        if self._asked_of is None or not self.asks_for_detail:
            return {}
        return {_DETAIL: self.detail_query(self._asked_of)}

    def session_values(self) -> SessionValues:
        """Return the filter, and whether the pane is hidden."""
        return {**super().session_values(), _DETAIL: "" if self._wants_detail else "hidden"}

    def restore(self, values: SessionValues) -> None:
        """Restore the filter, and whether the pane is hidden."""
        super().restore(values)
        self._wants_detail = values.get(_DETAIL) != "hidden"

    @property
    def detail_from(self) -> int:
        """The terminal width from which the pane is shown."""
        return _DETAIL_FROM

    @property
    def list_width(self) -> int:
        """The width that the list has before the pane grows."""
        return self.LIST_WIDTH

    @property
    def rows_above_detail(self) -> int:
        """The height of a list so low that the pane has room below it; 0 where it has not."""
        return 0

    @property
    def rows_of_list(self) -> int:
        """The rows that the list has without a pane below it."""
        return self.query_one("#beside").size.height - self.line_list.styles.margin.height

    @property
    def is_detail_below(self) -> bool:
        """Whether the pane is shown below the list, since there is no room beside it."""
        return self._wants_detail and self.size.width < self.detail_from and self.rows_above_detail > 0

    @property
    def has_detail(self) -> bool:
        """Whether the pane is shown."""
        return self._wants_detail and (self.size.width >= self.detail_from or self.is_detail_below)

    @property
    def asks_for_detail(self) -> bool:
        """Whether details of the cursor's line are queried."""
        return self.has_detail

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002 Textual calls that of the base class too
        """Show or hide the pane for the new size."""
        self.place_detail()

    def on_line_list_resized(self) -> None:
        """Draw list and pane for the widths that they have got, which may be some frames after `place_detail`."""
        self.draw()

    def on_line_list_cursor_moved(self) -> None:
        """Update the pane."""
        if self.can_draw:
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
        """Draw only the pane if the answer is for it, otherwise everything."""
        if name == _DETAIL and self.can_draw:
            self.draw_detail()
        else:
            super().draw_answer(name)

    def draw_detail(self) -> None:
        """Draw the pane, and query its data once the cursor has rested; to be called at the end of `redraw`."""
        key = self.detail_key()
        if key != self._detail_of and self.asks_for_detail:
            self._detail_of = key
            if self._settling is not None:
                self._settling.stop()
            self._settling = self.set_timer(_SETTLES_SECONDS, self._ask_for_detail)
        if not self.has_detail:
            return
        pane = self.query_one("#detail", Painted)
        pane.show(*(() if key is None else self.detail(pane.size.height)))

    @property
    def is_settled(self) -> bool:
        """Whether the details queried last are those of the cursor's line."""
        return self._asked_of == self._detail_of

    def _ask_for_detail(self) -> None:
        self._asked_of = self._detail_of
        self.query_again(_DETAIL)

    def place_detail(self) -> None:
        """Show or hide the pane, beside the list or below it, and set its size."""
        pane, is_below = self.query_one("#detail", Painted), self.is_detail_below
        narrowest, widest = _DETAIL_WIDTHS
        beside = min(widest, max(narrowest, self.size.width - self.list_width))
        pane.styles.width = "1fr" if is_below else beside
        pane.display = self.has_detail
        pane.set_class(self.app.settings.ascii_only, "-ascii")
        self.query_one("#beside").set_class(is_below, "-below")
        self.line_list.styles.height = self.rows_above_detail if is_below else "1fr"


class DescribedScreen(FilteredScreen):
    """A filtered list with lines about the selected item below it."""

    def body(self) -> Iterable[Widget]:
        """Return the header lines, the list, the lines below it and the filter's prompt."""
        header, lines, prompt = super().body()
        return header, lines, Painted(id="about"), prompt

    @property
    def about(self) -> Painted:
        """The lines about the item under the cursor."""
        return self.query_one("#about", Painted)


class MarkedScreen(DescribedScreen, Generic[Key]):
    """A described list whose items can be marked; `redraw` shows which keys are in `marks`."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: Marks[Key] = Marks()

    def mark(self, marks: Marks[Key]) -> None:
        """Set and show the marks."""
        self.marks = marks
        self.redraw()

    def cursor_key(self) -> Key | None:
        """The key under the cursor."""
        raise NotImplementedError

    def shown_keys(self) -> list[Key]:
        """All keys that pass the filter, in the order shown."""
        raise NotImplementedError

    def chosen_keys(self) -> Iterable[Key | None]:
        """The keys that an action applies to: those both marked and shown, or without marks the one at the cursor."""
        return self.marks.keys.intersection(self.shown_keys()) if self.marks else (self.cursor_key(),)

    def all_marks_hidden(self) -> bool:
        """Return whether the filter hides all marked items, and show a message if so: actions then apply to nothing."""
        hidden = bool(self.marks) and not self.chosen_keys()
        if hidden:
            self.app.say("the filter hides everything that is marked: clear one of them with Esc")
        return hidden

    def marked_text(self) -> str:
        """The number of marked items, and how many of them actions skip because the filter hides them."""
        if not self.marks:
            return ""
        hidden = len(self.marks.keys.difference(self.shown_keys()))
        left_out = f" ({hidden} hidden, left out)" if hidden else ""
        return f"{self.app.signs.marked} {len(self.marks.keys)} marked{left_out}"

    def keys_between(self, one: Key, other: Key) -> Iterable[Key]:
        """Return the range of shown keys from one key to another."""
        keys = self.shown_keys()
        first, last = sorted((keys.index(one), keys.index(other)))
        return keys[first : last + 1]

    def action_mark(self) -> None:
        """Mark the item under the cursor, or remove its mark."""
        key = self.cursor_key()
        if key is not None:
            self.mark(self.marks.toggled(key))

    def action_mark_range(self) -> None:
        """Mark all items from the one marked last to the one under the cursor."""
        key, anchor = self.cursor_key(), self.marks.anchor
        if key is None or anchor is None or anchor not in self.shown_keys():
            self.app.say("mark one end of the range first")
        else:
            self.mark(self.marks.added(self.keys_between(anchor, key)))

    def action_back(self) -> None:
        """Clear the marks; without marks, clear the filter."""
        if self.marks:
            self.mark(Marks())
        else:
            super().action_back()
