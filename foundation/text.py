"""Text of unknown origin, made safe to write into files and messages; `console.sanitize` does so for terminals."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return text on one line, with every control, invisible or direction-changing character written out."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in " ".join(text.split()))
