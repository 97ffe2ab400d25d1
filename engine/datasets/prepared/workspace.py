"""The folder in which a prepared tree is made, and putting the tree in the place of an earlier one."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.layout import DatasetFolder
from foundation.files import PARTIAL_SUFFIX, sync_directory, sync_file_system

TRASH = ".trash."


@contextmanager
def workspace(folder: DatasetFolder) -> Iterator[Path]:
    """Make a folder to work in, removed at the end; what a killed process left is resolved first.

    Only for who holds the dataset's claim.
    """
    resolve_leftovers(folder)
    work = Path(tempfile.mkdtemp(prefix=_prefix(folder), suffix=PARTIAL_SUFFIX, dir=folder.root))
    work.chmod(0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work)


def resolve_leftovers(folder: DatasetFolder) -> None:
    """Remove the workspaces of killed preparations; only for who holds the dataset's claim."""
    for left in folder.root.glob(f"{_prefix(folder)}*{PARTIAL_SUFFIX}"):
        _resolve(left, folder)


def _prefix(folder: DatasetFolder) -> str:
    return f".{folder.prepared.name}."


def _resolve(left: Path, folder: DatasetFolder) -> None:
    # we hold the claim, so a killed preparation left this; was it killed between the two renames at the end?
    if (left / "replaced").exists() and not folder.prepared.exists():
        (left / "prepared").rename(folder.prepared)
    shutil.rmtree(left)


def put_in_place(work: Path, folder: DatasetFolder) -> None:
    """Make the tree `prepared` in the workspace the dataset; a kill at any moment leaves the old one or the new one."""
    sync_file_system(work)  # the files' contents must reach the disk before the name that vouches for them
    if folder.prepared.exists():
        folder.prepared.rename(work / "replaced")
    (work / "prepared").rename(folder.prepared)
    sync_directory(folder.root)


def discard(folder: DatasetFolder, path: Path) -> None:
    """Remove a file or folder as a whole: a kill leaves rubbish under another name, never half of what was there."""
    rubbish = path
    if not path.name.startswith(TRASH):
        rubbish = folder.root / f"{TRASH}{secrets.token_hex(4)}"
        path.rename(rubbish)
    if rubbish.is_dir():
        shutil.rmtree(rubbish)
    else:
        rubbish.unlink()


def set_one_time(folder: Path) -> None:
    """Give all that agents see the same time stamp: when or in which order files were made may reveal their class."""
    now = time.time_ns()
    for _, _, names, here in os.fwalk(folder, topdown=False):
        for name in sorted(names):
            os.utime(name, ns=(now, now), dir_fd=here)
        os.utime(here, ns=(now, now))
