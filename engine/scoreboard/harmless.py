"""Text that others wrote, made harmless for files that we hand on; the console has its own way for terminals."""

from __future__ import annotations


def visible(text: str) -> str:
    """Text on one line with every control, invisible or direction-changing character written out."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in " ".join(text.split()))
