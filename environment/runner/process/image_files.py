"""Images as one file on the host of an agent: copied to its disk, checked by their digest, unpacked once for all."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from environment.runner.host.store import KEPT_FREE_BYTES, Copy, copied, make_store, remove
from environment.runner.protocol import ImageFile
from foundation.problems import DataProblem, EnvironmentProblem

Note = Callable[[int], None]
SQUASHFS, ARCHIVE, SIF = "squashfs", "archive", "sif"
SUFFIXES = {SQUASHFS: ".squashfs", ARCHIVE: ".tar", SIF: ".sif"}
_AGAIN = "Export it again: mlebench-console images export AGENT"
# What an image may need unpacked, in times of its file.
_UNPACKED = {SQUASHFS: 4, ARCHIVE: 1}


def nobody(_bytes: int) -> None:
    """Note nothing."""


def own_copy(image: ImageFile, store: Path, note: Note = nobody) -> Path:
    """Return this host's own copy of an image file, whose digest is right; made by the first who needs it.

    Nobody removes it before this process has ended.

    Args:
        image: to be copied.
        store: the folder on this host's own disk that all attempts share.
        note: is told how many more bytes were copied, and may raise where nobody wants it any more.

    Raises:
        DataProblem: the file is gone, or is another.
        EnvironmentProblem: there is no room for it.
        OSError: it can't be copied.
    """

    def copy(place: Path) -> None:
        if not Path(image.path).is_file():
            raise DataProblem(f"{image.path} is gone", "it held the agent's image", _AGAIN)
        _, digest = copied(Path(image.path), place, note)
        if digest != image.sha256:
            why = f"its SHA-256 is {digest[:12]}, not {image.sha256[:12]}"
            raise DataProblem(f"{image.path} is not the image of the launch", why, _AGAIN)

    return _made_once(Copy(store, f"{image.sha256}{SUFFIXES[image.format]}"), image.bytes, copy, note)


def unpacked(image: ImageFile, store: Path, note: Note = nobody) -> Path:
    """Return the folder into which an image file is unpacked on this host; it belongs to this user in all its parts.

    Arguments are those of `own_copy`.

    Raises:
        DataProblem: the file is gone, is another, or holds what no image does.
        EnvironmentProblem: this host can't unpack it.
        OSError: it can't be written.
    """

    def unpack(place: Path) -> None:
        file = own_copy(image, store, note)
        place.mkdir()
        if image.format == ARCHIVE:
            extract(file, place)
            file.unlink()  # only the folder is used from now on
        else:
            _unsquash(file, place)

    needed = image.bytes * _UNPACKED[image.format]
    return _made_once(Copy(store, f"{image.sha256}.root"), needed, unpack, note)


def _made_once(copy: Copy, needed: int, make: Callable[[Path], None], note: Note) -> Path:
    """Return what is at a place, made by the first who needs it while others wait; nobody sees half of it."""

    def wait() -> None:
        note(0)

    make_store(copy.place.parent)
    copy.keep(wait)
    with copy.working(wait):
        if not copy.place.exists():
            try:
                with copy.making(needed, KEPT_FREE_BYTES, wait):
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
    """Unpack an archive of a file system into a folder; nothing in it can lead out of there.

    Raises:
        DataProblem: it is no archive, or something in it leads out of it.
    """
    try:
        with tarfile.open(archive, "r:*") as stream:
            # Where tarfile has filters, it would warn, or leave out what images need; older ones have none.
            stream.extraction_filter = lambda member, _folder: member
            stream.extractall(folder, members=_members(stream, folder))  # noqa: S202 - `_members` keeps it inside
    except tarfile.TarError as error:
        raise DataProblem(f"{archive.name} is not the archive of an image", str(error)) from error


def _members(stream: tarfile.TarFile, folder: Path) -> Iterator[tarfile.TarInfo]:
    """Go through the members but for devices and the like, which only root could make; each becomes this user's own."""
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
    """Refuse what leads out of a folder, also through links that were unpacked before it.

    Raises:
        DataProblem: it does.
    """
    if ".." in PurePosixPath(place).parts or not (root / place).resolve().is_relative_to(root):
        raise DataProblem(
            f"{name} leads out of the image", f"it is a link to {place}" if place != name else ""
        )
