"""Sanitise untrusted text: the result contains no control characters and no markup, only styled text.

Terminals act on escape sequences, so every text from agents, file names and competitions passes through here before it
is shown. It does not depend on Textual; `console.tui.painting` draws the spans.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import NewType

from rich.cells import cell_len, get_character_cell_size
from rich.style import Style

TAB = 8
_MOST_COMBINING = 3

_SGR = r"\x1b\[(?P<sgr>[0-9;:]*)m"
# Control strings that a terminal would act on (title, clipboard, links, device control): from ESC or C1 to their end.
_STRING = r"(?:\x1b(?P<kind>[]PX^_])|(?P<c1>[\x90\x98\x9d-\x9f]))[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"
_TOKEN = re.compile(f"{_SGR}|{_STRING}|(?P<text>[ -~]+)|(?P<other>.)", re.DOTALL)
_STRING_NAMES = {"]": "OSC", "P": "DCS", "X": "SOS", "^": "PM", "_": "APC"}
# They only choose between two glyphs of a character, which may differ in width; without them the width is as computed.
_VARIATION_SELECTORS = frozenset("\ufe0e\ufe0f")


# Spans carry the style that the text asks for as a Rich style; the drawing code decides which parts to apply.
PLAIN = Style.null()


# Text in which nothing is left that a terminal would act on, so that its width is what it seems.
Clean = NewType("Clean", str)


@dataclass(frozen=True)
class Span:
    """Sanitised text in one style; `visible` marks a visible replacement of an unprintable character."""

    text: str
    style: Style = PLAIN
    visible: bool = False


def spans(text: str, *, limit: int | None = None) -> tuple[Span, ...]:
    """Sanitise one line of untrusted text and keep its colours.

    Args:
        text: one line; a line feed within it is shown as a control character.
        limit: the greatest width in cells; a mark at the end counts the characters cut off.
    """
    if _is_harmless(text) and (limit is None or len(text) <= limit):
        return (Span(text),) if text else ()
    made = tuple(_merged(_parsed(_last_state(text))))
    return made if limit is None else _capped(made, limit)


def plain(text: str, *, limit: int | None = None) -> Clean:
    """Sanitise one line of untrusted text and drop its colours."""
    return Clean("".join(span.text for span in spans(text, limit=limit)))


def plain_lines(text: str) -> tuple[Clean, ...]:
    """Sanitise an untrusted text of several lines and drop its colours."""
    return tuple(plain(line) for line in text.split("\n"))


def _is_harmless(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _last_state(text: str) -> str:
    """Return the last version of a line that was overwritten with carriage returns, as progress bars do."""
    if "\r" not in text:
        return text
    return next((part for part in reversed(text.split("\r")) if part), "")


def _parsed(text: str) -> Iterator[Span]:
    style, column, combining = PLAIN, 0, 0
    for token in _TOKEN.finditer(text):
        if (sgr := token["sgr"]) is not None:
            style = _after_sgr(style, sgr)
            continue
        if (ascii_text := token["text"]) is not None:
            column, combining = column + len(ascii_text), 0
            yield Span(ascii_text, style)
            continue
        character = token["other"]
        if character is None:
            # A C1 character is equivalent to ESC and the character 0x40 below it.
            kind = token["kind"] or chr(ord(token["c1"]) - 0x40)
            span = Span(f"<{_STRING_NAMES[kind]}>", visible=True)
        elif character == "\t":
            span = Span(" " * (TAB - column % TAB), style)
        elif character in _VARIATION_SELECTORS:
            continue
        else:
            category = unicodedata.category(character)
            combining = combining + 1 if category in ("Mn", "Me") else 0
            if combining > _MOST_COMBINING or category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
                span = Span(_made_visible(character), visible=True)
            else:
                span = Span(" " if category == "Zs" else character, style)
        column += cell_len(span.text)
        yield span


def _made_visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return f"^{chr(code + 0x40)}"
    return "^?" if code == 0x7F else f"<{code:02X}>" if code < 0x100 else f"<U+{code:04X}>"


def _after_sgr(style: Style, parameters: str) -> Style:
    from rich.ansi import SGR_STYLE_MAP  # imported here, since most starts print no colours

    codes = iter([int(code or 0) for code in re.split("[;:]", parameters)] if len(parameters) < 64 else [0])
    for code in codes:
        if code == 0:
            style = PLAIN
        elif code in (38, 48):
            colour = _extended_colour(codes)
            if colour:
                style += Style(color=colour) if code == 38 else Style(bgcolor=colour)
        elif code in SGR_STYLE_MAP:
            style += Style.parse(SGR_STYLE_MAP[code])
    return style


def _extended_colour(codes: Iterator[int]) -> str | None:
    """Parse a palette or RGB colour from the codes that follow; None if it is invalid."""
    kind = next(codes, None)
    wanted = list(islice(codes, {5: 1, 2: 3}.get(kind or 0, 0)))
    if not wanted or max(wanted) > 255:
        return None
    if kind == 5:
        return f"color({wanted[0]})"
    return "#{:02x}{:02x}{:02x}".format(*wanted) if len(wanted) == 3 else None


def _merged(parts: Iterator[Span]) -> Iterator[Span]:
    for (style, visible), alike in groupby(parts, key=lambda span: (span.style, span.visible)):
        yield Span("".join(span.text for span in alike), style, visible)


def _capped(made: tuple[Span, ...], limit: int) -> tuple[Span, ...]:
    if sum(cell_len(span.text) for span in made) <= limit:
        return made
    count = sum(len(span.text) for span in made)
    # The mark contains the number of characters cut off, so its width is computed for the largest possible number.
    room = limit - len(f"… +{count:,}")
    if room < 0:
        return (Span("…"[:limit], visible=True),)
    kept: list[Span] = []
    for span in made:
        fitting = _fitting(span.text, room)
        kept.append(replace(span, text=fitting))
        room -= cell_len(fitting)
        if len(fitting) < len(span.text):
            break
    left = count - sum(len(span.text) for span in kept)
    return (*(span for span in kept if span.text), Span(f"… +{left:,}", visible=True))


def _fitting(text: str, room: int) -> str:
    width = 0
    for place, character in enumerate(text):
        width += get_character_cell_size(character)
        if width > room:
            return text[:place]
    return text
