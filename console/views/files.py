"""What lies in an attempt's directory, listed without following a link or opening a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MOST_ENTRIES = 400
_DEEPEST = 4


@dataclass(frozen=True)
class Entry:
    """One name in a directory; `kind` is what it is."""

    path: str
    name: str
    depth: int
    kind: str
    bytes: int


def listing(directory: Path) -> tuple[tuple[Entry, ...], bool]:
    """List a directory and what is below it, and tell whether there was more than is shown."""
    found = list(islice(_below(directory, 0), MOST_ENTRIES + 1))
    return tuple(found[:MOST_ENTRIES]), len(found) > MOST_ENTRIES


def _below(directory: Path, depth: int) -> Iterator[Entry]:
    try:
        with os.scandir(directory) as scan:
            # Bounded before sorting: an agent may make a million files.
            inside = sorted(islice(scan, 10 * MOST_ENTRIES), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    for entry in inside:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        kind = _kind(status.st_mode)
        yield Entry(entry.path, entry.name + ("/" if kind == "folder" else ""), depth, kind, status.st_size)
        if kind == "folder" and depth + 1 < _DEEPEST:
            yield from _below(Path(entry.path), depth + 1)


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"
