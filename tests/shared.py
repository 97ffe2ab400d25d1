"""Folders that a test run makes once, in whichever of its processes needs them first, and that all tests share."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

_root: Path | None = None


def share_below(folder: Path) -> None:
    """Have such folders made below one that ends with the test run."""
    global _root
    _root = folder


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of a name, which `make` has made; tests must not write to it."""
    folder = (_root or Path(_of_this_process().name)) / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        made = folder.with_name(f"{folder.name}.made")
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of one that failed to make it
            make(folder)
            made.touch()
    return folder


@cache
def _of_this_process() -> TemporaryDirectory[str]:
    """Return a folder for programs beside the tests that use the same data."""
    return TemporaryDirectory(prefix="shared-")
