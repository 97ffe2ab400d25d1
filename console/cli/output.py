"""Writing to the terminal: text that passed the sanitiser, tables of it, or one JSON document."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any


def say(text: str = "") -> None:
    """Write text whose every line has been made harmless."""
    from console.sanitize import plain_lines

    sys.stdout.write("\n".join(plain_lines(text)) + "\n")


def complain(text: str) -> None:
    """Write to standard error, likewise."""
    from console.sanitize import plain_lines

    sys.stderr.write("\n".join(plain_lines(text)) + "\n")


def say_json(document: Any) -> None:
    """Write one JSON document; it is pure ASCII, so that nothing in it can reach a terminal as control."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def say_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    limits: Mapping[str, int] | None = None,
) -> None:
    """Write columns of harmless text, those named in `right` flush right, none wider than its limit."""
    from rich.cells import cell_len

    from console.sanitize import plain

    most = [(limits or {}).get(heading) for heading in headings]
    table = [list(headings)]
    table += [[plain(cell, limit=limit) for cell, limit in zip(row, most, strict=True)] for row in rows]
    widths = [max(cell_len(line[column]) for line in table) for column in range(len(headings))]
    for line in table:
        padded = []
        for heading, cell, width in zip(headings, line, widths, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if heading in right else cell + space)
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def bytes_text(count: int | None) -> str:
    """Write a size for people, in powers of ten as disks are sold; unknown is a dash."""
    if count is None:
        return "-"
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def duration_text(seconds: float | None) -> str:
    """Write a span for people, in its one or two largest units; unknown is a dash."""
    if seconds is None:
        return "-"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def moment_text(moment: float | None) -> str:
    """Write a moment in local time, to the minute; unknown is a dash."""
    return "-" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
