"""The list with a cursor: it stays with its line, and where it is seen, whatever comes and goes around it."""

from __future__ import annotations

from collections.abc import Iterable

from mlebench_console.console.pieces import ColumnSpan, Line
from mlebench_console.console.tui.screen import OpeningScreen
from mlebench_console.console.tui.widgets.line_list import LineList
from tests.console.conftest import OpenConsole, ShownConsole


async def lines_in(console: ShownConsole) -> LineList:
    """A list on a screen that shows nothing else, and never shows anything by itself."""
    await console.app.push_screen(OpeningScreen())
    lines = LineList()
    await console.app.screen.mount(lines)
    lines.focus()
    await console.pilot.pause()
    return lines


def numbered(numbers: Iterable[int]) -> list[Line]:
    return [Line(((f"line {number}", "text"),), key=number, selectable=True) for number in numbers]


def seen_at(lines: LineList) -> int:
    """On which line of the screen the cursor stands."""
    return lines.place - round(lines.scroll_y)


async def test_the_cursors_line_stays_where_it_is_seen_when_lines_come_or_go_above_it(
    opened: OpenConsole,
) -> None:
    async with opened(None, size=(80, 24)) as console:
        lines = await lines_in(console)
        lines.show(numbered(range(100)))
        lines.put_cursor(60)
        for _up in range(5):
            lines.action_cursor(-1)
        before = seen_at(lines)
        for numbers in (range(-40, 100), range(20, 100), range(-3, 100)):
            lines.show(numbered(numbers))
            await console.pilot.pause()
            assert lines.key == 55 and seen_at(lines) == before


async def test_a_cursor_near_the_top_is_never_pushed_out_of_view(opened: OpenConsole) -> None:
    async with opened(None, size=(80, 24)) as console:
        lines = await lines_in(console)
        lines.show(numbered(range(100)))
        for first in range(0, -200, -7):
            lines.show(numbered(range(first, 100)))
            await console.pilot.pause()
            assert lines.key == 0 and 0 <= seen_at(lines) < lines.size.height


async def test_a_cursor_whose_line_is_gone_is_seen_on_the_next_one(opened: OpenConsole) -> None:
    async with opened(None, size=(80, 24)) as console:
        lines = await lines_in(console)
        lines.show([*numbered(range(2)), *numbered(range(5, 6)), Line((("nothing", "text"),))])
        lines.put_cursor(5)
        await console.sees("▎ine 5")
        # As many lines as before, and the one that the cursor comes to says what it said.
        lines.show([*numbered(range(2)), Line((("nothing", "text"),)), Line((("still nothing", "text"),))])
        await console.sees("▎ine 1", "still nothing")
        assert lines.key == 1


async def test_lines_that_change_their_order_take_the_cursor_with_them(opened: OpenConsole) -> None:
    async with opened(None, size=(80, 24)) as console:
        lines = await lines_in(console)
        lines.show(numbered(range(100)))
        lines.show(numbered(reversed(range(100))))
        await console.pilot.pause()
        assert lines.key == 0 and 0 <= seen_at(lines) < lines.size.height


async def test_a_view_that_was_scrolled_away_from_the_cursor_stays(opened: OpenConsole) -> None:
    async with opened(None, size=(80, 24)) as console:
        lines = await lines_in(console)
        lines.show(numbered(range(100)))
        await console.pilot.pause()
        lines.scroll_to(y=70, animate=False)
        lines.show(numbered(range(101)))
        await console.pilot.pause()
        assert round(lines.scroll_y) == 70


async def test_the_cursor_passes_over_columns_with_nothing_to_choose(opened: OpenConsole) -> None:
    def line(key: int, *selectable: bool) -> Line:
        cells = tuple(
            ColumnSpan(8 * place, 8 * place + 7, selectable=each) for place, each in enumerate(selectable)
        )
        return Line((("x" * 40, "text"),), key, cells, selectable=True)

    async with opened(None, size=(80, 24)) as console:
        lines = await lines_in(console)
        lines.show([line(0, True, False, True), line(1, False, True, False), line(2, True, True, True)])
        assert lines.column == 0
        lines.action_column(1)
        assert lines.column == 2
        lines.action_cursor(1)
        assert lines.column == 1
        lines.action_cursor(1)
        assert lines.column == 2
