"""Digests of folders' content, and read-only copies of limited size."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem

_PIECE_BYTES = 1 << 20
_READABLE = 0o555


def content_digest(folder: Path, *, ignored: Collection[str] = (), left_out: Collection[Path] = ()) -> str:
    """Hash names, executable bits and contents of all files and links, and the names of empty folders.

    Args:
        folder: the folder to hash.
        ignored: names to leave out at any depth.
        left_out: paths to leave out.
    """
    total = hashlib.sha256()
    for path in sorted(_entries(folder, ignored)):
        if path in left_out:
            continue
        if path.is_symlink():
            kind, content = b"link", os.fsencode(path.readlink())
        elif path.is_dir():
            kind, content = b"folder", b""
        elif path.is_file():
            kind = b"program" if path.stat().st_mode & stat.S_IXUSR else b"file"
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").digest()
        else:
            continue  # sockets and the like have no content
        for piece in (os.fsencode(path.relative_to(folder)), kind, content):
            total.update(len(piece).to_bytes(8) + piece)
    return total.hexdigest()


def copy_read_only(
    source: Path, target: Path, *, most_bytes: int, most_files: int, ignored: Collection[str] = ()
) -> None:
    """Copy a folder, and make the copy read-only to protect it from accidental changes.

    Raises:
        DataProblem: it is too large, a link leads out of it, or it contains something other than files, folders and
            links.
    """
    target.mkdir(parents=True)
    left = most_bytes
    for path, found in _what_can_be_copied(source, most_bytes, most_files, ignored):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(found.st_mode):
            copy.symlink_to(path.readlink())
        elif stat.S_ISDIR(found.st_mode):
            copy.mkdir()
        else:
            left -= _copy_file(path, copy, left)
            if left < 0:  # the file has grown since it was checked
                raise _too_large(source, f"its files have more than {most_bytes:,} bytes")
    for parent, _, _ in os.walk(target, topdown=False):
        Path(parent).chmod(_READABLE)


def check_copy(source: Path, *, most_bytes: int, most_files: int, ignored: Collection[str] = ()) -> None:
    """Check that a folder can be copied, without copying it.

    Raises:
        DataProblem: `copy_read_only` would refuse it.
    """
    for path, found in _what_can_be_copied(source, most_bytes, most_files, ignored):
        if stat.S_ISREG(found.st_mode) and not os.access(path, os.R_OK):
            raise DataProblem(
                f"{path} can't be copied", "permission to read it is denied", "Give yourself that permission."
            )


def _what_can_be_copied(
    source: Path, most_bytes: int, most_files: int, ignored: Collection[str]
) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the entries of a folder; refuse a folder that is too large, or has an entry that can't be copied."""
    size = 0
    for number, path in enumerate(_entries(source, ignored)):
        found = path.lstat()
        if number >= most_files:
            raise _too_large(source, f"it has more than {most_files:,} files")
        if stat.S_ISLNK(found.st_mode):
            _refuse_link_out(path, source)
        elif stat.S_ISREG(found.st_mode):
            size += found.st_size
            if size > most_bytes:
                raise _too_large(source, f"its files have more than {most_bytes:,} bytes")
        elif not stat.S_ISDIR(found.st_mode):
            raise DataProblem(f"{path} can't be copied", "it is not a file, a folder or a link", "Remove it.")
        yield path, found


def _too_large(source: Path, why: str) -> DataProblem:
    return DataProblem(f"{source} is too large", why)


def make_private(folder: Path) -> None:
    """Create a folder that only this user can enter, or close an existing one to others whatever the umask was.

    One of another user, or in which everybody may write, such as /tmp, stays as it is, because others need it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid == os.getuid() and not found.st_mode & stat.S_ISVTX and found.st_mode & 0o077:
        folder.chmod(0o700)


def make_own(folder: Path) -> None:
    """Create a folder, in one that is writable for everybody, that only this user can access.

    Raises:
        EnvironmentProblem: it exists and belongs to another user, or others may write to it.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise EnvironmentProblem(
            f"{folder} can't be used", "it is not a directory that only you can write to", "Remove it."
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def own_folder_in(base: Path, name: str) -> Path:
    """Return the folder with a name in one that is writable for everybody, that only this user can access.

    Where others have taken the name, so that this user's programs fail, it gets an ending that nobody can foresee.

    Raises:
        OSError: it can't be created.
    """
    for place in (base / name, *sorted(base.glob(f"{name}.*"))):
        with suppress(EnvironmentProblem, OSError):
            if place.is_dir():
                make_own(place)
                return place
    try:
        make_own(base / name)
    except (EnvironmentProblem, FileExistsError):
        return Path(tempfile.mkdtemp(prefix=f"{name}.", dir=base))
    return base / name


def make_writable(folder: Path) -> None:
    """Make everything in a folder writable for its owner."""
    for parent, folders, names in os.walk(folder):
        here = Path(parent)
        here.chmod(here.stat().st_mode | stat.S_IRWXU)
        for path in (here / name for name in (*folders, *names)):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | stat.S_IRUSR | stat.S_IWUSR)


def _entries(folder: Path, ignored: Collection[str]) -> Iterator[Path]:
    """Yield all files, links and empty folders; links are not followed."""
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        here = Path(parent)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in ignored and name not in links)
        found = [name for name in (*names, *links) if name not in ignored]
        if not found and not folders and here != folder:
            yield here
        for name in sorted(found):
            yield here / name


def _refuse(error: OSError) -> None:
    raise DataProblem(f"{error.filename} can't be read", str(error.strerror)) from error


def _refuse_link_out(path: Path, source: Path) -> None:
    leads_to = path.readlink()
    inside = os.path.normpath(path.parent.relative_to(source) / leads_to)
    if leads_to.is_absolute() or Path(inside).parts[:1] == (os.pardir,):
        raise DataProblem(
            f"{path} can't be copied",
            f"it is a link to {leads_to}, which is not in {source.name}",
            "Put what it links to into the folder.",
        )


def _copy_file(path: Path, copy: Path, most_bytes: int) -> int:
    """Copy a file and return its size; copying stops once the size exceeds `most_bytes`."""
    copied = 0
    with path.open("rb") as stream, copy.open("xb") as into:
        while copied <= most_bytes and (piece := stream.read(_PIECE_BYTES)):
            copied += into.write(piece)
        mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
    copy.chmod((mode & _READABLE) | stat.S_IRUSR)
    return copied
