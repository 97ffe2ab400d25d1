"""Textual strips of pieces of text with roles, and of sanitised text in the styles that it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from mlebench_console.console.roles import Piece
from mlebench_console.console.sanitize import PLAIN, Span
from mlebench_console.console.tui.theme import Palette

# The first sign of braille, in whose dots curves are drawn, and the signs of bars in eighths of a cell.
_BLANK = 0x2800
_BLOCKS = range(0x2580, 0x25A0)


def strip(pieces: Sequence[Piece], width: int, palette: Palette, *, raised: bool = False) -> Strip:
    """Draw pieces as a line of a given width, on the background of the screen or (`raised`) of a box above it."""
    base = palette.raised if raised else palette.base
    segments = []
    for text, role in pieces:
        style = base + palette.style(role)
        word = text.strip(" ")
        if role in palette.grounds and word and ord(word[0]) in _BLOCKS:
            # A bar is a surface: its colour is the one that stands behind words, and nothing is behind its end.
            segments.append(Segment(text, base + Style(color=palette.grounds[role])))
        elif role in palette.grounds and word and _BLANK < ord(word[0]) <= _BLANK + 0xFF:
            # The dots of a curve; a band behind them would look like a second one.
            segments.append(Segment(text, base + Style(color=style.color)))
        elif role in palette.grounds and word != text:
            # A role's own background is that of its words, not of the blanks that pad them.
            begin = text.index(word) if word else len(text)
            after = text[begin + len(word) :]
            segments += [Segment(text[:begin], base), Segment(word, style), Segment(after, base)]
        else:
            segments.append(Segment(text, style))
    return Strip(segments).adjust_cell_length(width, base)


def overlaid(drawn: Strip, style: Style) -> Strip:
    """Apply a style on top of a drawn line, as the cursor does."""
    return Strip(Segment.apply_style(drawn, post_style=style), drawn.cell_length)


def drawn_style(asked: Style, palette: Palette) -> Style:
    """Return the style for untrusted text that asks for one; attributes that hide text or blink are dropped."""
    if asked == PLAIN:
        return palette.base
    wanted = Style(
        color=palette.colour_of(asked.color),
        bgcolor=palette.colour_of(asked.bgcolor),
        bold=asked.bold or None,
        dim=asked.dim or None,
        italic=asked.italic or None,
        underline=asked.underline or None,
        reverse=asked.reverse or None,
        strike=asked.strike or None,
    )
    return palette.base + wanted


def span_segments(spans: Iterable[Span], palette: Palette) -> list[Segment]:
    """Draw sanitised untrusted text in the styles it asks for."""
    mark = palette.base + palette.style("mark")
    return [Segment(span.text, mark if span.visible else drawn_style(span.style, palette)) for span in spans]
