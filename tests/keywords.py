"""Which files need to be read for the tests that `-k` names."""

from __future__ import annotations

import re
from pathlib import Path

_WORD = re.compile(r"[^\s()]+")
_OPERATORS = {"and", "or"}


def sought_names(expression: str) -> tuple[str, ...]:
    """Return the names in an expression of `-k` of which a test's file has one; none if other files may match too.

    Names that begin with `test_` are those of functions or of files. Others may be those of parameters, which are not
    always written in a file, and `not` chooses by what is missing.
    """
    words = [word.lower() for word in _WORD.findall(expression) if word not in _OPERATORS]
    return tuple(words) if all(word.startswith("test_") for word in words) else ()


def may_hold(file: Path, names: tuple[str, ...]) -> bool:
    """Return whether a file of tests may hold one with a part of these names."""
    if any(name in str(file).lower() for name in names):
        return True
    text = file.read_text(encoding="utf-8").lower()
    return any(name in text for name in names)
