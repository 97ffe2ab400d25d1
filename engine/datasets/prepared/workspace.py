"""The temporary folder in which a prepared tree is made, and replacing an earlier tree with it."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.layout import DatasetFolder
from mlebench_console.foundation.files import PARTIAL_SUFFIX, sync_directory, sync_file_system

TRASH = ".trash."
_LEFTOVERS = (".prepared*.partial", f"{TRASH}*")


@contextmanager
def workspace(folder: DatasetFolder) -> Iterator[Path]:
    """Create a temporary folder, removed at the end, after cleaning up those of killed processes.

    The caller must hold the dataset's claim.
    """
    resolve_leftovers(folder)
    work = Path(tempfile.mkdtemp(prefix=_prefix(folder), suffix=PARTIAL_SUFFIX, dir=folder.root))
    work.chmod(0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work)


def leftovers_in(data_dir: Path) -> set[str]:
    """List the folders of a data directory with files of killed preparations."""
    return {path.parent.name for pattern in _LEFTOVERS for path in data_dir.glob(f"*/{pattern}")}


def resolve_leftovers(folder: DatasetFolder) -> None:
    """Clean up after killed preparations; the caller must hold the dataset's claim."""
    for path in (*checksums.stale_records(folder.root), *folder.root.glob(f"{TRASH}*")):
        discard(folder, path)
    for left in folder.root.glob(f"{_prefix(folder)}*{PARTIAL_SUFFIX}"):
        _resolve(left, folder)


def _prefix(folder: DatasetFolder) -> str:
    return f".{folder.prepared.name}."


def _resolve(left: Path, folder: DatasetFolder) -> None:
    # It is from a killed preparation, as we hold the claim; it may have been killed between its two last renames.
    if (left / "replaced").exists() and not folder.prepared.exists():
        (left / "prepared").rename(folder.prepared)
    shutil.rmtree(left)


def put_in_place(work: Path, folder: DatasetFolder) -> None:
    """Replace the dataset with the workspace's `prepared`; a kill at any moment leaves the old tree or the new one."""
    sync_file_system(work)  # the contents must reach the disk before the folder gets its final name
    if folder.prepared.exists():
        folder.prepared.rename(work / "replaced")
    (work / "prepared").rename(folder.prepared)
    sync_directory(folder.root)


def discard(folder: DatasetFolder, path: Path) -> None:
    """Remove a file or folder after renaming it, so that a kill never leaves a half-removed one under its name."""
    rubbish = path
    if not path.name.startswith(TRASH):
        rubbish = folder.root / f"{TRASH}{secrets.token_hex(4)}"
        path.rename(rubbish)
    if rubbish.is_dir():
        shutil.rmtree(rubbish)
    else:
        rubbish.unlink()


def set_one_time(folder: Path) -> None:
    """Give all files for agents the same time stamp, because times or their order may reveal the files' classes."""
    now = time.time_ns()
    for _, _, names, here in os.fwalk(folder, topdown=False):
        for name in sorted(names):
            os.utime(name, ns=(now, now), dir_fd=here)
        os.utime(here, ns=(now, now))
