"""Folders that are made once per test run, by the process that needs them first, and shared by all tests."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

_root: Path | None = None


def share_below(folder: Path) -> None:
    """Set the parent of such folders, which is removed at the end of the test run."""
    global _root
    _root = folder


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of a name, calling `make` if it does not exist; tests must not write to it."""
    folder = (_root or Path(_of_this_process().name)) / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        made = folder.with_name(f"{folder.name}.made")
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # left by a process that failed to make it
            make(folder)
            made.touch()
    return folder


@cache
def _of_this_process() -> TemporaryDirectory[str]:
    """Return a folder for programs beside the tests that use the same data."""
    return TemporaryDirectory(prefix="shared-")
