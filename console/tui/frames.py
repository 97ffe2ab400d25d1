"""A cell-by-cell copy of the terminal's content, used to send only the difference of each frame.

Textual sends every region that may have changed, with the full style of each segment: over a slow link switching a
screen takes seconds, and a screen that is drawn twice is sent twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from rich.segment import ControlType, Segment
from rich.style import Style

# A character with its combining characters, and its style; the cell after a wide character holds no text.
_Cell = tuple[str, Style]
_UNKNOWN: _Cell = ("\0", Style.null())
# Gaps of up to this many unchanged cells are sent too, because moving the cursor over them takes as many bytes.
_BRIDGED = 4


class TerminalContent:
    """The known content of a terminal, from what was sent to it."""

    def __init__(self) -> None:
        self._rows: list[list[_Cell]] = []
        self._width = 0

    def forget(self) -> None:
        """Treat all cells as unknown, for example after another program has used the terminal."""
        self._rows = []

    def changes(self, segments: Iterable[Segment], width: int, height: int, colours: ColorSystem) -> str:
        """Return the output that shows a frame, and record the frame as shown; empty if nothing differs.

        Args:
            segments: pieces of lines, each preceded by a control segment that moves the cursor to its start.
            width: of the terminal; when width or height change, its content becomes unknown.
            height: of the terminal.
            colours: how many colours the terminal has.
        """
        if (width, height) != (self._width, len(self._rows)):
            self._width, self._rows = width, [[_UNKNOWN] * width for _ in range(height)]
        dirty: dict[int, set[int]] = {}
        x = y = 0
        for text, style, control in segments:
            if control:
                for code in control:
                    if code[0] is ControlType.CURSOR_MOVE_TO:
                        x, y = int(code[1]), int(code[2])  # type: ignore[misc]
                continue
            if text == "\n" or not 0 <= y < height:
                continue
            cells = _cells(text, style or Style.null())
            row, end = self._rows[y], min(width, x + len(cells))
            del cells[max(0, end - x) :]
            if row[x:end] != cells:
                changed = dirty.setdefault(y, set())
                changed.update(place for place, cell in enumerate(cells, x) if row[place] != cell)
                row[x:end] = cells
            x += len(cells)
        return "".join(self._sent(dirty, colours)) + ("\x1b[0m" if dirty else "")

    def _sent(self, dirty: dict[int, set[int]], colours: ColorSystem) -> Iterator[str]:
        shown: Style | None = None
        for y in sorted(dirty):
            row, at = self._rows[y], -1
            for begin, end in _stretches(sorted(dirty[y]), row):
                yield f"\x1b[{begin - at}C" if at >= 0 else f"\x1b[{y + 1};{begin + 1}H"
                at = end
                for text, style in row[begin:end]:
                    if text and style is not shown and not (text == " " and _hides(shown, style)):
                        yield _change(shown, style, colours)
                        shown = style
                    yield text


def _cells(text: str, style: Style) -> list[_Cell]:
    blank = _blank(style)
    if text.isascii():
        return [(letter, blank if letter == " " else style) for letter in text]
    cells: list[_Cell] = []
    for letter in text:
        width = get_character_cell_size(letter)
        if width == 0:
            # A combining character belongs to the preceding one, which may be wide; without one it is dropped.
            place = -2 if cells and not cells[-1][0] else -1
            if cells:
                cells[place] = (cells[place][0] + letter, cells[place][1])
            continue
        cells.append((letter, blank if letter == " " else style))
        cells += [("", style)] * (width - 1)
    return cells


def _stretches(places: list[int], row: list[_Cell]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of cells of a line that have to be sent.

    A line with characters whose width terminals disagree about is sent whole, so that misplaced cells don't remain.
    """
    if any(
        not text.isascii() and (len(text) > 1 or get_character_cell_size(text) != 1) for text, _ in row
    ) or any(not text for text, _ in row):
        yield 0, len(row)
        return
    begin, end = places[0], places[0] + 1
    for place in places[1:]:
        if place - end > _BRIDGED:
            yield begin, end
            begin = place
        end = place + 1
    yield begin, end


@lru_cache(maxsize=4096)
def _blank(style: Style) -> Style:
    """Return the style of a space: the text colour is left out unless a line or reversal makes it visible."""
    return style if _shows_on_blanks(style) else Style(bgcolor=style.bgcolor)


@lru_cache(maxsize=4096)
def _hides(shown: Style | None, blank: Style) -> bool:
    """Return whether a space looks the same in the current style as in its own."""
    return (
        shown is not None
        and shown.bgcolor == blank.bgcolor
        and not _shows_on_blanks(shown)
        and not _shows_on_blanks(blank)
    )


def _shows_on_blanks(style: Style) -> bool:
    return bool(style.reverse or style.underline or style.underline2 or style.strike or style.overline)


@lru_cache(maxsize=4096)
def _change(before: Style | None, after: Style, colours: ColorSystem) -> str:
    """Return the escape sequence that changes one style into another; with no style before, it sets everything."""
    attributes, colour, ground = _codes(after, colours)
    if before is None:
        codes = ["0", *attributes, *filter(None, (colour, ground))]
    else:
        attributes_before, colour_before, ground_before = _codes(before, colours)
        ending = dict.fromkeys(_ENDS[code] for code in attributes_before if code not in attributes)
        # A code that ends one attribute may end another one as well (22 ends both bold and dim).
        begun = [code for code in attributes if code not in attributes_before or _ENDS[code] in ending]
        codes = [*ending, *begun]
        codes += [colour or "39"] if colour != colour_before else []
        codes += [ground or "49"] if ground != ground_before else []
    return f"\x1b[{';'.join(codes)}m" if codes else ""


# The code that ends each attribute, by the attribute's code.
_ENDS = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29"}
_ENDS |= {"21": "24", "51": "54", "52": "54", "53": "55"}


@lru_cache(maxsize=4096)
def _codes(style: Style, colours: ColorSystem) -> tuple[tuple[str, ...], str, str]:
    """Return the codes of a style: of its attributes, its colour and its background."""

    def codes(part: Style) -> str:
        return (
            part.render("x", color_system=colours).partition("x")[0].removeprefix("\x1b[").removesuffix("m")
        )

    attributes = tuple(code for code in codes(style.without_color).split(";") if code)
    return attributes, codes(Style(color=style.color)), codes(Style(bgcolor=style.bgcolor))
