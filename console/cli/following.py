"""Printing the end of a log and what is added to it, as harmless text."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from console.cli.common import say

_BLOCK = 1 << 16
_POLL_SECONDS = 0.25


def print_last_lines(path: Path, count: int) -> int:
    """Print the last lines of a file without reading the rest; return how far it was read."""
    with path.open("rb") as stream:
        end = stream.seek(0, os.SEEK_END)
        start, content = end, b""
        while start > 0 and content.count(b"\n") <= count:
            step = min(_BLOCK, start)
            start -= step
            stream.seek(start)
            content = stream.read(step) + content
    whole = content.endswith(b"\n")
    lines = content.split(b"\n")[: -1 if whole else None]
    _print(lines[-count:] if count else [])
    return end


def follow(path: Path, offset: int) -> None:
    """Print whole lines as they are added, until interrupted."""
    left = b""
    with path.open("rb") as stream:
        stream.seek(offset)
        while True:
            added = stream.read(_BLOCK)
            if not added:
                time.sleep(_POLL_SECONDS)
                continue
            *lines, left = (left + added).split(b"\n")
            _print(lines)


def _print(lines: list[bytes]) -> None:
    for line in lines:
        say(line.decode("utf-8", "replace"))
    sys.stdout.flush()
