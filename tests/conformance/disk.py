"""Watching how much of the disk a preparation takes; it looks at every moment at which that can be most."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

# Before these files go, get shorter or make place for another one; in between what lies on the disk only grows.
_SHRINKING = {"os.remove", "os.rename", "os.truncate", "shutil.rmtree"}
_FOLDER = -1  # what is removed by its full name; one by one in an open folder it is `shutil.rmtree` at work


class Watch:
    """What lies below a folder, apart from what lay there before.

    Attributes:
        peak: the most bytes that files had at a time.
        elsewhere: files that were written to outside of it, or that have no name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: set[int] = set()
        self._before.update(self._found())
        self.peak = 0
        self.elsewhere: list[str] = []

    def look(self) -> None:
        """See how much lies there now."""
        self.peak = max(self.peak, sum(self._found().values()))

    def _found(self) -> dict[int, int]:
        sizes = {}
        for base, _, names in os.walk(self._folder):
            for name in names:
                found = os.lstat(Path(base, name))
                if name != ".claim" and found.st_ino not in self._before:
                    sizes[found.st_ino] = found.st_size
        return sizes

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """Note what Python tells that it is going to do."""
        if event in _SHRINKING and (event != "os.remove" or args[1] == _FOLDER):
            self.look()
        elif event == "open" and isinstance(args[0], str | bytes) and isinstance(args[2], int):
            path, flags = os.fsdecode(args[0]), args[2]
            written = flags & (os.O_WRONLY | os.O_RDWR) and path.startswith(tempfile.gettempdir())
            without_name = flags & os.O_TMPFILE == os.O_TMPFILE
            if without_name or (written and not path.startswith(f"{self._folder}{os.sep}")):
                self.elsewhere.append(path)


_watching: list[Watch] = []


@cache
def _hook() -> None:
    """Have everything told to whoever watches; a hook cannot be taken back."""

    def tell(event: str, args: tuple[Any, ...]) -> None:
        for watch in _watching:
            watch.heard(event, args)

    sys.addaudithook(tell)


@contextmanager
def watched(folder: Path) -> Iterator[Watch]:
    """Watch what happens below a folder."""
    _hook()
    watch = Watch(folder)
    _watching.append(watch)
    try:
        yield watch
    finally:
        _watching.remove(watch)
    watch.look()
