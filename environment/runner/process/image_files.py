"""Images as one file on the host of an agent: copied to its disk, checked by their digest, unpacked once for all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from environment.runner.protocol import ImageFile
from foundation import files
from foundation.problems import DataProblem, EnvironmentProblem

SQUASHFS, ARCHIVE, SIF = "squashfs", "archive", "sif"
SUFFIXES = {SQUASHFS: ".squashfs", ARCHIVE: ".tar", SIF: ".sif"}
_PIECE_BYTES = 1 << 22
_AGAIN = "Export it again: mlebench-console images export AGENT"
_UNUSED_SECONDS = 14 * 86_400


def own_copy(image: ImageFile, cache: Path) -> Path:
    """Return this host's own copy of an image file, whose digest is right; made by the first who needs it.

    Args:
        image: to be copied.
        cache: a folder on this host's own disk, which all attempts share.

    Raises:
        DataProblem: the file is gone, or is another.
        OSError: it can't be copied.
    """

    def copy(place: Path) -> None:
        digest = hashlib.sha256()
        if not Path(image.path).is_file():
            raise DataProblem(f"{image.path} is gone", "it held the agent's image", _AGAIN)
        with Path(image.path).open("rb") as source, place.open("xb") as target:
            while piece := source.read(_PIECE_BYTES):
                digest.update(piece)
                target.write(piece)
        if digest.hexdigest() != image.sha256:
            why = f"its SHA-256 is {digest.hexdigest()[:12]}, not {image.sha256[:12]}"
            raise DataProblem(f"{image.path} is not the image of the launch", why, _AGAIN)

    return _made_once(cache / f"{image.sha256}{SUFFIXES[image.format]}", copy)


def unpacked(image: ImageFile, cache: Path) -> Path:
    """Return the folder into which an image file is unpacked on this host; it belongs to this user in all its parts.

    Raises:
        DataProblem: the file is gone, is another, or holds what no image does.
        EnvironmentProblem: this host can't unpack it.
        OSError: it can't be written.
    """

    def unpack(place: Path) -> None:
        file = own_copy(image, cache)
        place.mkdir()
        if image.format == ARCHIVE:
            extract(file, place)
            file.unlink()  # only the folder is used from now on
        else:
            _unsquash(file, place)

    return _made_once(cache / f"{image.sha256}.root", unpack)


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


def _made_once(place: Path, make: Callable[[Path], None]) -> Path:
    """Return what is at a place, made by the first who needs it while others wait; nobody sees half of it."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for folder in (place.parent.parent, place.parent):  # on a node it may be below a folder that all write to
        if folder.stat().st_uid != os.getuid():
            why = "it belongs to somebody else, who could change what lies there"
            raise EnvironmentProblem(f"{folder} can't be used", why, "Give the profile another scratch.")
    if not place.exists():
        with _alone(place.with_name(f".{place.name}.lock")):
            if not place.exists():
                _remove_unused(place.parent, f".{place.name}.")
                partial = place.with_name(f".{place.name}.{secrets.token_hex(4)}{files.PARTIAL_SUFFIX}")
                try:
                    make(partial)
                    partial.rename(place)
                except BaseException:
                    files.remove_tree(partial)
                    raise
    os.utime(place)
    return place


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait for a lock of this host, which the kernel drops with its holder."""
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _remove_unused(cache: Path, own: str) -> None:
    """Remove what no attempt has begun with for long, and what a kill has left half made, also of our own lock."""
    for path in cache.iterdir():
        is_partial = path.name.endswith(files.PARTIAL_SUFFIX)
        is_used = is_partial and not path.name.startswith(own) and not _is_left(path)
        if path.name.endswith(".lock") or is_used:
            continue
        with suppress(FileNotFoundError):  # another attempt removes it
            if is_partial or time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
                aside = path.with_name(
                    f".{path.name.strip('.')}.{secrets.token_hex(4)}{files.PARTIAL_SUFFIX}"
                )
                path.rename(aside)
                files.remove_tree(aside)


def _is_left(partial: Path) -> bool:
    """Tell whether nobody makes it any more: whoever does holds its lock."""
    name = partial.name.rsplit(".", 2)[0]
    try:
        with partial.with_name(f"{name}.lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
