"""Image files on an agent's host: copied to its disk, checked by their digest, and unpacked once for all attempts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from mlebench_console.environment.runner.host.store import (
    KEPT_FREE_BYTES,
    Copy,
    copy_file,
    make_store,
    remove,
)
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem

OnBytes = Callable[[int], None]
SQUASHFS, ARCHIVE, SIF = "squashfs", "archive", "sif"
SUFFIXES = {SQUASHFS: ".squashfs", ARCHIVE: ".tar", SIF: ".sif"}
_AGAIN = "Export it again: mlebench-console images export AGENT"
# How many times the size of its file an unpacked image may need.
_UNPACKED = {SQUASHFS: 4, ARCHIVE: 1}


def ignore(_bytes: int) -> None:
    """Do nothing."""


def own_copy(image: ImageFile, store: Path, on_bytes: OnBytes = ignore) -> Path:
    """Return this host's own copy of an image file, and copy it first if there is none; its digest is checked.

    It is not removed before this process ends.

    Args:
        image: the file to copy.
        store: the folder on this host's own disk that all attempts share.
        on_bytes: gets the size of each copied block, and ends the copying by raising.

    Raises:
        DataProblem: the file is gone or has changed.
        EnvironmentProblem: there is not enough space for it.
        OSError: it can't be copied.
    """

    def copy(place: Path) -> None:
        if not Path(image.path).is_file():
            raise DataProblem(f"{image.path} is gone", "it held the agent's image", _AGAIN)
        _, digest = copy_file(Path(image.path), place, on_bytes)
        if digest != image.sha256:
            why = f"its SHA-256 is {digest[:12]}, not {image.sha256[:12]}"
            raise DataProblem(f"{image.path} is not the image of the launch", why, _AGAIN)

    return _made_once(Copy(store, f"{image.sha256}{SUFFIXES[image.format]}"), image.bytes, copy, on_bytes)


def unpacked(image: ImageFile, store: Path, on_bytes: OnBytes = ignore) -> Path:
    """Return the folder with the unpacked image, and unpack it first if there is none; this user owns all its files.

    Arguments are those of `own_copy`.

    Raises:
        DataProblem: the file is gone, has changed, or has a path outside the image.
        EnvironmentProblem: this host can't unpack it.
        OSError: it can't be written.
    """

    def unpack(place: Path) -> None:
        file = own_copy(image, store, on_bytes)
        place.mkdir()
        if image.format == ARCHIVE:
            extract(file, place)
            file.unlink()  # only the folder is used from here on
        else:
            _unsquash(file, place)

    needed = image.bytes * _UNPACKED[image.format]
    return _made_once(Copy(store, f"{image.sha256}.root"), needed, unpack, on_bytes)


def _made_once(copy: Copy, needed: int, make: Callable[[Path], None], on_bytes: OnBytes) -> Path:
    """Return the path of a complete copy: the first process that needs it makes it, others wait."""

    def on_wait() -> None:
        on_bytes(0)

    make_store(copy.place.parent)
    copy.acquire_lease(on_wait)
    with copy.locked(on_wait):
        if not copy.place.exists():
            try:
                with copy.reserving(needed, KEPT_FREE_BYTES, on_wait):
                    make(copy.partial)
                copy.partial.rename(copy.place)
            except BaseException:
                remove(copy.partial)
                raise
    return copy.place


def _unsquash(file: Path, place: Path) -> None:
    program = shutil.which("unsquashfs")
    if program is None:
        raise EnvironmentProblem(
            f"{file.name} can't be unpacked",
            "unsquashfs is not installed",
            "Install squashfs-tools or squashfuse, or export the image with --format archive.",
        )
    done = subprocess.run(
        [program, "-no-progress", "-quiet", "-no-xattrs", "-force", "-dest", str(place), str(file)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise EnvironmentProblem(
            f"{file.name} can't be unpacked", done.stderr.decode(errors="replace")[-300:]
        )


def extract(archive: Path, folder: Path) -> None:
    """Unpack an archive of a file system into a folder; no path in it can lead outside.

    Raises:
        DataProblem: it is no archive, or has a path that leads outside.
    """
    try:
        with tarfile.open(archive, "r:*") as stream:
            # Filters, which only newer versions of tarfile have, warn or leave out files that images need.
            stream.extraction_filter = lambda member, _folder: member
            stream.extractall(folder, members=_members(stream, folder))  # noqa: S202 - `_members` keeps it inside
    except tarfile.TarError as error:
        raise DataProblem(f"{archive.name} is not the archive of an image", str(error)) from error


def _members(stream: tarfile.TarFile, folder: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the members except devices and the like, which only root can make, each owned by this user."""
    root = folder.resolve()
    for member in stream:
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            continue
        member.name = member.name.lstrip("/")
        _require_inside(root, member.name, member.name)
        if member.islnk():
            member.linkname = member.linkname.lstrip("/")
            _require_inside(root, member.linkname, member.name)
        member.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0o600)
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        yield member


def _require_inside(root: Path, place: str, name: str) -> None:
    """Check that a path stays in a folder, also through links that were unpacked before it.

    Raises:
        DataProblem: it leads outside.
    """
    if ".." in PurePosixPath(place).parts or not (root / place).resolve().is_relative_to(root):
        raise DataProblem(
            f"{name} leads out of the image", f"it is a link to {place}" if place != name else ""
        )
