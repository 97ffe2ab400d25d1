"""Text in messages and files: sizes, limits, and making untrusted text safe; for terminals see `console.sanitize`."""

from __future__ import annotations

import time
from collections.abc import Iterable


def visible(text: str) -> str:
    """Return text on one line, with every control, invisible or direction-changing character escaped."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in " ".join(text.split()))


def spreadsheet_text(text: str) -> str:
    """Return visible text for a cell of a CSV file, which no spreadsheet takes for a formula."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def gigabytes(count: int) -> str:
    """Format a size."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


def plural(count: int, word: str, several: str = "") -> str:
    """Write a number with its noun, `3 runs`."""
    return f"{count:,} {word if count == 1 else several or word + 's'}"


def names_of_limits(codes: Iterable[str]) -> str:
    """Write the limits of a run's processes by their codes, `processors, system calls`."""
    return ", ".join(code.replace("_", " ") for code in codes)


def clock_time(moment: float) -> str:
    """Write a moment as a local time of day, `14:05`."""
    return time.strftime("%H:%M", time.localtime(moment))


def date_and_time(moment: float) -> str:
    """Write a moment as a local date and time, `2026-03-16 14:05`."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def limit_text(hours: float) -> str:
    """Write a time limit, in minutes where it is below an hour."""
    return f"{hours:g} h" if hours >= 1 else f"{hours * 60:g} min"
