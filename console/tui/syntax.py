"""Colours for lines of code, by a file's name; a line is looked at by itself, so that any page costs the same."""

from __future__ import annotations

from typing import Any

from console.tui.painting import Piece
from console.tui.theme import Role

# Beyond this a line is data rather than code.
_LONGEST = 500


class Highlighter:
    """Finds the words, texts and remarks of one language."""

    def __init__(self, lexer: Any) -> None:
        self._lexer = lexer

    def pieces_of(self, line: str) -> list[Piece]:
        """A harmless line in the roles of its words."""
        if len(line) > _LONGEST:
            return [(line, "text")]
        return [(text, _role(str(kind))) for kind, text in self._lexer.get_tokens(line) if text]


def highlighter_for(name: str) -> Highlighter | None:
    """What knows the language of a file of this name; None where no language is known or there is none."""
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return None if lexer.name == "Text only" else Highlighter(lexer)


_ROLES: tuple[tuple[str, Role], ...] = (
    ("Token.Keyword", "accent"),
    ("Token.Literal.String", "good"),
    ("Token.Literal.Number", "running"),
    ("Token.Comment", "dim"),
    ("Token.Name.Function", "strong"),
    ("Token.Name.Class", "strong"),
    ("Token.Name.Decorator", "bronze"),
    ("Token.Name.Tag", "accent"),
    ("Token.Operator.Word", "accent"),
)


def _role(kind: str) -> Role:
    return next((role for beginning, role in _ROLES if kind.startswith(beginning)), "text")
