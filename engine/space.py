"""Disk space: how much is free, whether something fits, and one error for a full disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.foundation.text import gigabytes

_USUAL_GROWTH = 1.6
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskFull(EnvironmentProblem):
    """There is not enough space; the work can continue when there is."""

    code: ClassVar[str] = "disk_full"


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which need not exist."""
    return shutil.disk_usage(existing(folder)).free


def existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def require_space(folder: Path, needed: int, *, keep_free: int = 0) -> None:
    """Check that `needed` bytes fit on the disk of a folder.

    Raises:
        DiskFull: they don't.
    """
    free = free_bytes(folder)
    if needed + keep_free > free:
        kept = f", of which {gigabytes(keep_free)} must stay free" if keep_free else ""
        raise DiskFull(
            "the disk is full",
            f"{gigabytes(needed)} are needed in {folder}, {gigabytes(free)} are free{kept}",
            "Free some space; it then continues by itself.",
        )


@contextmanager
def naming_full_disks(folder: Path) -> Iterator[None]:
    """Turn the error of a full disk or an exceeded quota into a problem that names the folder.

    Raises:
        DiskFull: something could not be written for lack of space.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFull(
            "the disk is full", f"writing in {folder} failed", "Free some space; it then continues by itself."
        ) from error


def growth(zip_bytes: int) -> int:
    """Estimate the extracted size of a zip from its size alone: images and sounds hardly grow, tables do."""
    return int(zip_bytes * _USUAL_GROWTH)


def size_on_disk(folder: Path) -> int:
    """Return the total size of the files in a folder; a file with several hard links counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            found = os.lstat(os.path.join(base, name))  # noqa: PTH118 - called for every one of millions
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                total += found.st_size
    return total
