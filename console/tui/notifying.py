"""Asking the terminal for a desktop notification."""

from __future__ import annotations

from console.sanitize import plain

_TITLE = "mlebench-console"
_LONGEST = 300


def desktop_sequence(text: str) -> str:
    """What asks the terminal for a desktop notification (OSC 9, and OSC 777 for those that know only that)."""
    harmless = plain(text, limit=_LONGEST).replace(";", ",")
    return f"\x1b]9;{_TITLE}: {harmless}\x1b\\\x1b]777;notify;{_TITLE};{harmless}\x1b\\"
