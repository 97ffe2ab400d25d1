"""Words of messages: sizes, and text of unknown origin made safe; for terminals `console.sanitize` does that."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return text on one line, with every control, invisible or direction-changing character written out."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in " ".join(text.split()))


def gigabytes(count: int) -> str:
    """Format a size."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"
