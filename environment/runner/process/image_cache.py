"""Agents' exported images on a host: checked by their digest, and unpacked once for all attempts."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from mlebench_console.environment.runner.host.store import KEPT_FREE_BYTES, Copy, make_store, remove
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem

_AGAIN = "Export it again: mlebench-console images export AGENT"


def unpacked(image: ImageFile, store: Path) -> Path:
    """Return the folder with an unpacked image, and unpack it first if there is none; this user owns all its files.

    Of several processes that need it the first unpacks it and the others wait. It is not removed before this process
    ends.

    Args:
        image: the exported image.
        store: the folder on this host's own disk that all attempts share.

    Raises:
        DataProblem: the file is gone, has changed, or has a path outside the image.
        EnvironmentProblem: there is not enough space for it.
        OSError: it can't be written.
    """
    make_store(store)
    copy = Copy(store, f"{image.sha256}.root")
    copy.acquire_lease()
    with copy.locked():
        if not copy.place.exists():
            try:
                with copy.reserving(image.unpacked_bytes, KEPT_FREE_BYTES):
                    _unpack(image, copy.partial)
                # After a power cut a name must not stand for files whose content was never written.
                files.sync_file_system(copy.partial)
                copy.partial.rename(copy.place)
            except BaseException:
                remove(copy.partial)
                raise
    return copy.place


def _unpack(image: ImageFile, folder: Path) -> None:
    path = Path(image.path)
    if not path.is_file():
        raise DataProblem(f"{path} is gone", "it held the agent's image", _AGAIN)
    folder.mkdir()
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != image.sha256:
            why = f"its SHA-256 is {digest[:12]}, not {image.sha256[:12]}"
            raise DataProblem(f"{path} is not the image of the launch", why, _AGAIN)
        stream.seek(0)
        extract(stream, folder)


def extract(stream: IO[bytes], folder: Path) -> None:
    """Unpack the archive of a file system into a folder; no path in it can lead outside.

    Raises:
        DataProblem: it is no archive, or has a path that leads outside.
    """
    try:
        with tarfile.open(fileobj=stream, mode="r:gz") as archive:
            # Filters, which only newer versions of tarfile have, warn or leave out files that images need.
            archive.extraction_filter = lambda member, _folder: member
            archive.extractall(folder, members=_members(archive, folder))  # noqa: S202 - `_members` keeps it inside
    except (tarfile.TarError, EOFError) as error:
        raise DataProblem("this is not the archive of an image", str(error)) from error


def _members(archive: tarfile.TarFile, folder: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the members except devices and the like, which only root can make, each owned by this user."""
    root = folder.resolve()
    for member in archive:
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
