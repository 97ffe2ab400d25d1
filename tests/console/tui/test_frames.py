"""Of every frame only what differs is sent, and what the terminal then shows is what all of it would have shown."""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.control import Control
from rich.segment import Segment
from rich.style import Style

from mlebench_console.console.tui.frames import TerminalContent

WIDTH, HEIGHT = 24, 4
STYLES = [
    Style(color="color(252)", bgcolor="color(16)"),
    Style(color="color(246)", bgcolor="color(16)"),
    Style(color="color(246)", bgcolor="color(17)", bold=True),
    Style(color="#ff8800", bgcolor="#101010", bold=True, italic=True),
    Style(reverse=True),
    Style(color="red", underline=True),
    Style.null(),
]
Part = tuple[int, int, str, int]
texts = st.text(alphabet="ab  ▶…日é", min_size=1, max_size=12)
parts = st.tuples(
    st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1), texts, st.integers(0, len(STYLES) - 1)
)


def segments(frame: list[Part]) -> list[Segment]:
    found = []
    for x, y, text, style in frame:
        # Nothing is drawn beyond the edge, nor over half of a wide letter.
        whole = Segment.adjust_line_length([Segment(text, STYLES[style])], WIDTH - x)
        found += [Control.move_to(x, y).segment, *whole]
    return found


def whole_lines(frame: list[Part]) -> list[Part]:
    """Each part on a line of its own width, so that no wide letter is cut in halves by another one."""
    return [(0, y, text, style) for _x, y, text, style in frame]


def screen() -> tuple[pyte.Screen, pyte.Stream]:
    shown = pyte.Screen(WIDTH, HEIGHT)
    return shown, pyte.Stream(shown)


def seen(shown: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """Every cell's letter and look; the colour of what can't be seen does not count."""
    cells: list[list[tuple[object, ...]]] = []
    for y in range(HEIGHT):
        row: list[tuple[object, ...]] = []
        for x in range(WIDTH):
            cell = shown.buffer[y][x]
            lines = (cell.bg, cell.reverse, cell.underscore)
            blank = cell.data == " " and not cell.reverse and not cell.underscore
            row.append(
                (cell.data, *lines) if blank else (cell.data, *lines, cell.fg, cell.bold, cell.italics)
            )
        cells.append(row)
    return cells


@given(frames=st.lists(st.lists(parts, min_size=1, max_size=5), min_size=1, max_size=5))
def test_the_terminal_shows_what_all_of_every_frame_would_have_shown(frames: list[list[Part]]) -> None:
    content = TerminalContent()
    (ours, our_stream), (whole, whole_stream) = screen(), screen()
    for frame in frames:
        drawn = segments(whole_lines(frame))
        our_stream.feed(content.changes(drawn, WIDTH, HEIGHT, ColorSystem.TRUECOLOR))
        for segment in drawn:
            if segment.control:
                whole_stream.feed(segment.text)
            else:
                style = segment.style or Style.null()
                whole_stream.feed(style.render(segment.text, color_system=ColorSystem.TRUECOLOR))
        assert seen(ours) == seen(whole)


@given(frame=st.lists(parts, min_size=1, max_size=5))
def test_what_is_shown_already_is_not_sent_again(frame: list[Part]) -> None:
    content = TerminalContent()
    # One part a line: of two on the same line the first would not be shown at the end.
    once = list({part[1]: part for part in whole_lines(frame)}.values())
    assert content.changes(segments(once), WIDTH, HEIGHT, ColorSystem.EIGHT_BIT)
    assert content.changes(segments(once), WIDTH, HEIGHT, ColorSystem.EIGHT_BIT) == ""
    content.forget()
    assert content.changes(segments(once), WIDTH, HEIGHT, ColorSystem.EIGHT_BIT)


def test_a_change_is_sent_with_the_codes_that_it_needs() -> None:
    content = TerminalContent()
    content.changes(segments([(0, 0, "64 running", 0)]), WIDTH, HEIGHT, ColorSystem.EIGHT_BIT)
    sent = content.changes(segments([(0, 0, "63 running", 0)]), WIDTH, HEIGHT, ColorSystem.EIGHT_BIT)
    assert sent == "\x1b[1;2H\x1b[0;38;5;252;48;5;16m3\x1b[0m"


def test_another_size_is_drawn_as_a_whole() -> None:
    content = TerminalContent()
    content.changes(segments([(0, 0, "text", 0)]), WIDTH, HEIGHT, ColorSystem.EIGHT_BIT)
    assert content.changes(segments([(0, 0, "text", 0)]), WIDTH, HEIGHT + 1, ColorSystem.EIGHT_BIT)


def test_a_letter_that_combines_takes_no_cell_of_its_own() -> None:
    content, (shown, stream) = TerminalContent(), screen()
    for text in ("e\u0301x", "e\u0301y", "\u0301z"):
        stream.feed(content.changes(segments([(0, 0, text, 0)]), WIDTH, HEIGHT, ColorSystem.EIGHT_BIT))
    assert shown.display[0].rstrip().endswith("z") and "x" not in shown.display[0]
