"""A list of lines with a cursor; only visible lines are drawn, so that long lists cost no more than short ones.

The lines of tables are made by `table`; what else is shown is laid out by `blocks`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mlebench_console.console.pieces import Line
from mlebench_console.console.tui.keys import bindings
from mlebench_console.console.tui.painting import overlaid, strip
from mlebench_console.console.tui.widgets.blocks import Block, laid_out
from mlebench_console.console.tui.widgets.inputs import Prompt

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp


@dataclass
class TitleClicked(Message):
    """The title of a sortable column was clicked."""

    by: str


class LineList(ScrollView, can_focus=True, inherit_bindings=False):
    """A list with a cursor for lines and columns; when lines change, the cursor stays on its key, and in view."""

    DEFAULT_CSS = """
    LineList { height: 1fr; width: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    /* Lines are as wide with a scroll bar as without, so no column jumps when one comes. */
    LineList { scrollbar-gutter: stable; }
    """
    BINDINGS = bindings("list", "matrix")
    app: BaseApp

    class CursorMoved(Message):
        """The cursor has moved to another line or column."""

    class Resized(Message):
        """It has another size, for which its lines may have to be drawn again."""

    class Opened(Message):
        """Enter was pressed, or the line under the cursor was clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()
        self._heading: Line | None = None
        self._cursor = 0
        self._column = 0
        self._begins_at: int | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines shown, without the heading."""
        return self._lines

    @property
    def line_width(self) -> int:
        """The width of a line in cells."""
        return self.scrollable_content_region.width or self.screen.size.width

    @property
    def key(self) -> Hashable:
        """The key of the line under the cursor; None if there is none."""
        line = self._line_at_cursor()
        return None if line is None else line.key

    @property
    def column(self) -> int:
        """The index of the chosen column: the selectable one nearest to the column chosen last."""
        line = self._line_at_cursor()
        choices = () if line is None else _selectable(line)
        return min(choices, key=lambda each: abs(each - self._column), default=0)

    @property
    def column_by(self) -> str:
        """The sort order of the column under the cursor; empty if it has none."""
        line = self._line_at_cursor()
        return line.cells[self.column].by if line is not None and line.cells else ""

    @property
    def place(self) -> int:
        """The index of the line under the cursor."""
        return self._cursor if self._begins_at is None else self._begins_at

    def start_at(self, place: int) -> None:
        """Put the cursor on the line with this index once there are lines."""
        self._begins_at = place

    def show(self, content: Iterable[Block], *, heading: Line | None = None) -> None:
        """Show the lines of this; only those that differ are redrawn, and the cursor stays on its key.

        Args:
            content: what scrolls.
            heading: a line above them that does not scroll.
        """
        key, before, heading_before = self.key, self._lines, self._heading
        place_before, top = self._cursor, round(self.scroll_y)
        was_seen = top <= place_before < top + self._page()
        self._lines = tuple(laid_out(content, self.app.drawing.within(self.line_width)))
        self._heading = heading
        place = self._place_of(key)
        self._cursor = self._nearest(min(self._cursor, len(self._lines) - 1)) if place is None else place
        if self._begins_at is not None and any(line.selectable for line in self._lines):
            self._cursor = self._nearest(min(self._begins_at, len(self._lines) - 1))
            self._begins_at = None
            self.call_after_refresh(self._keep_in_view)
        size = self._whole_size()
        if size.height != self.virtual_size.height or len(before) != len(self._lines):
            self.virtual_size = size
            self.refresh()
            if was_seen and before:
                self._stay_in_view(self._cursor - place_before)
        else:
            if heading != heading_before:
                self.refresh(Region(0, 0, self.size.width, 1))
            shown = range(top, min(top + self._page(), len(self._lines)))
            # The cursor may have moved to a line whose text has not changed.
            moved = {place_before, self._cursor} if self._cursor != place_before else set()
            self._refresh_lines({y for y in shown if y in moved or before[y] != self._lines[y]})
            if was_seen and self._cursor != place_before:
                self._keep_in_view()

    def put_cursor(self, key: Hashable, column: int | None = None) -> bool:
        """Put the cursor on the line with this key; return whether there is one."""
        place = self._place_of(key)
        if place is None:
            return False
        self._column = self._column if column is None else column
        self._go(place)
        return True

    def render_line(self, y: int) -> Strip:
        """Draw one line, with the cursor if it is there."""
        place = y - self._headed() + round(self.scroll_y)
        width = self.size.width
        if self._heading is not None and y == 0:
            return strip(self._heading.pieces, width, self.app.palette)
        if place >= len(self._lines):
            return Strip.blank(width, self.app.palette.base)
        line = self._lines[place]
        drawn = strip(line.pieces, width, self.app.palette)
        if place != self._cursor or not line.selectable:
            return drawn
        return self._with_cursor(drawn, line)

    def _with_cursor(self, drawn: Strip, line: Line) -> Strip:
        palette, sign = self.app.palette, self.app.signs.cursor
        mark = strip(((sign, "accent"),), 1, palette)
        focused = self.screen.focused
        # What is typed below the list is about its line.
        if not self.has_focus and not (focused is not None and isinstance(focused.parent, Prompt)):
            return Strip.join([mark, drawn.crop(1)])
        if not _selectable(line):
            return Strip.join([mark, overlaid(drawn.crop(1), palette.cursor)])
        cell, bold = line.cells[self.column], Style(bold=True)
        named = [each for each in line.cells if each.name == cell.name]
        sign_at = cell.name - 1
        return Strip.join(
            [
                drawn.crop(0, sign_at),
                mark,
                overlaid(drawn.crop(cell.name, named[0].begin), bold),
                drawn.crop(named[0].begin, cell.begin),
                overlaid(drawn.crop(cell.begin, cell.end), palette.cursor + bold),
                drawn.crop(cell.end),
            ]
        )

    def on_resize(self) -> None:
        """Adapt the scrolled area to the new size."""
        self.virtual_size = self._whole_size()
        self._keep_in_view()
        self.post_message(self.Resized())

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked line; a click at the cursor opens it, one on a column's title sorts."""
        place = event.y - self._headed() + round(self.scroll_y)
        on_heading = self._heading is not None and event.y == 0
        if place >= len(self._lines) and not on_heading:
            return
        line = self._heading if self._heading is not None and on_heading else self._lines[place]
        by = line.sorts_by(event.x)
        if by:
            self.post_message(TitleClicked(by))
        if not line.selectable:
            return
        again = place == self._cursor
        for column in _selectable(line):
            if line.cells[column].begin <= event.x < line.cells[column].end:
                again = again and column == self.column
                self._column = column
        self._go(place)
        if again:
            self.post_message(self.Opened())

    def action_cursor(self, step: int) -> None:
        """Move to the next selectable line, up or down."""
        place = self._cursor + step
        while 0 <= place < len(self._lines) and not self._lines[place].selectable:
            place += step
        if 0 <= place < len(self._lines):
            self._go(place)
        elif step < 0:
            self.scroll_to(y=0, animate=False)

    def action_page(self, step: int) -> None:
        """Move by a page."""
        wanted = self._cursor + step * max(1, self._page() - 1)
        self._go(self._nearest(min(max(wanted, 0), len(self._lines) - 1)))

    def action_edge(self, end: int) -> None:
        """Move to the first or the last line."""
        self._go(self._nearest(0 if end < 0 else len(self._lines) - 1))

    def action_column(self, step: int) -> None:
        """Choose the next selectable column, to the left or right."""
        line = self._line_at_cursor()
        choices = () if line is None else _selectable(line)
        if choices:
            place = choices.index(self.column) + step
            self._column = choices[min(max(place, 0), len(choices) - 1)]
            self._refresh_lines({self._cursor})
            self.post_message(self.CursorMoved())

    def action_open(self) -> None:
        """Post that the line under the cursor is to be opened."""
        if self._line_at_cursor() is not None:
            self.post_message(self.Opened())

    def _headed(self) -> int:
        return 0 if self._heading is None else 1

    def _page(self) -> int:
        """Return the number of lines visible at once."""
        return self.size.height - self._headed()

    def _whole_size(self) -> Size:
        return Size(self.scrollable_content_region.width, len(self._lines) + self._headed())

    def _line_at_cursor(self) -> Line | None:
        if 0 <= self._cursor < len(self._lines) and self._lines[self._cursor].selectable:
            return self._lines[self._cursor]
        return None

    def _place_of(self, key: Hashable) -> int | None:
        found = (place for place, line in enumerate(self._lines) if line.selectable and line.key == key)
        return None if key is None else next(found, None)

    def _nearest(self, place: int) -> int:
        choices = [each for each, line in enumerate(self._lines) if line.selectable]
        return min(choices, key=lambda each: (abs(each - place), -each), default=0)

    def _go(self, place: int) -> None:
        before, self._cursor = self._cursor, place
        self._refresh_lines({before, place})
        self._keep_in_view()
        self.post_message(self.CursorMoved())

    def _stay_in_view(self, moved: int) -> None:
        """Keep the cursor's line in its row when lines above it come or go, unless the list is scrolled to its top."""
        if moved and round(self.scroll_y):
            self._scroll(max(0, round(self.scroll_y) + moved))
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        height = self._page()
        if height <= 0:
            return
        # The heading of a group is kept in view with the group's first line.
        headed = self._cursor and not self._lines[self._cursor - 1].selectable
        above = self._cursor - 1 if headed else self._cursor
        top = round(self.scroll_y)
        if above < top:
            self._scroll(above)
        elif self._cursor >= top + height:
            self._scroll(self._cursor - height + 1)

    def _scroll(self, top: int) -> None:
        # Forced, because new lines may be the first that need a scroll bar.
        self.scroll_to(y=top, animate=False, force=True)

    def _refresh_lines(self, places: set[int]) -> None:
        top = round(self.scroll_y)
        regions = [
            Region(0, place - top + self._headed(), self.size.width, 1)
            for place in sorted(places)
            if place >= top
        ]
        if regions:
            self.refresh(*regions)


def _selectable(line: Line) -> tuple[int, ...]:
    """Return the indices of a line's columns that the cursor may choose."""
    return tuple(place for place, cell in enumerate(line.cells) if cell.selectable)
