"""Files: written whole or not at all, and read safely where an agent may have written them."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from foundation.problems import DataProblem, reading, refuse_pointer

PARTIAL_SUFFIX = ".partial"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LEFT = 20
_MOST_SHOWN = 200


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of `path` for writing and rename it over `path` at the end.

    When the block raises, `path` is left as it was and the temporary file is removed. With
    `durable`, content and name have reached the disk when the block is left.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def remove_partials(folder: Path) -> None:
    """Remove what a writer that was killed has left half written; for who alone writes in the folder."""
    for left in folder.glob(f".*{PARTIAL_SUFFIX}"):
        left.unlink()


def write_bytes(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Put `content` at `path` in one step."""
    with replacing(path, durable=durable) as stream:
        stream.write(content)


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Put `text` at `path` in one step, as UTF-8 and with line ends as they stand."""
    write_bytes(path, text.encode(), durable=durable)


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Put `value` at `path` as JSON in one step."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n", durable=durable)


def read_csv(path: Path, columns: Iterable[str], kind: str) -> list[dict[str, str]]:
    """Read the rows of a CSV file that has at least these columns; lines that begin with `#` are comments.

    Raises:
        DataProblem: it can't be read, or lacks a column and so is not such a `kind` of table.
    """
    with reading(path):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    reader = csv.DictReader(line for line in lines if not line.startswith("#"))
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        refuse_pointer(path)
        raise DataProblem(f"{path} is not a {kind}", f"it has no column {', '.join(missing)}")
    return list(reader)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Write rows as the text of a CSV file."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(path: Path) -> None:
    """Make everything written to the file system of `path` durable; for many files at once.

    Other file systems are left alone: one that hangs, as a network's may, must not hold us.
    """
    import ctypes  # a third of this module's import time, for the one function that needs it

    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if libc.syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), "syncfs failed", str(path))
    finally:
        os.close(descriptor)


class TooLarge(DataProblem):
    """A file has more bytes than are taken."""


@contextmanager
def reading_untrusted(path: Path, *, max_bytes: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file that an agent may have written: regular files only, never through a link.

    Opening without blocking keeps a FIFO from holding us; the check is made on the open file,
    so that nothing can be put in its place in between. Only the last part of the path is guarded:
    give a directory that the agent cannot rename, or that nobody writes to any more.

    Raises:
        DataProblem: it is missing, a link, or no regular file; TooLarge: it is larger than `max_bytes`.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        is_link = error.errno == errno.ELOOP and path.is_symlink()
        reason = "is a symbolic link" if is_link else (error.strerror or str(error))
        raise DataProblem(f"{path.name} was not read", reason) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DataProblem(f"{path.name} was not read", "it is not a regular file")
        if max_bytes is not None and found.st_size > max_bytes:
            raise TooLarge(
                f"{path.name} was not read",
                f"it has {found.st_size:,} bytes, at most {max_bytes:,} are taken",
            )
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> list[str]:
    """Remove a file or a folder with all that is below it, whatever an agent made of it, as far as possible.

    Returns:
        What is left and why, one line each and twenty at most; nothing when all of it is gone.
    """
    steps = removing_tree(path)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            left: list[str] = end.value
            return left


def removing_tree(path: Path) -> Generator[None, None, list[str]]:
    """Do what `remove_tree` does in steps that remove at most one entry each; returns the same.

    A folder is opened by its name in the folder above, so neither depth nor the length of a path matters.
    Links are removed and never followed; folders that are closed to us, but ours, are opened.
    """
    left: list[str] = []
    try:
        here = os.open(path.parent, _FOLDER & ~os.O_NOFOLLOW)
    except FileNotFoundError:
        return left
    above = [_OpenFolder("", _identity(here), [path.name])]
    try:
        while True:
            folder = above[-1]
            try:
                if folder.todo:
                    name = folder.todo.pop()
                    below = _unlink_or_open(here, name)
                    if below is not None:
                        os.close(here)
                        here = below
                        above.append(_OpenFolder(name, _identity(here), []))
                        above[-1].todo.extend(os.listdir(here))  # noqa: PTH208 - of what is open
                elif len(above) == 1:
                    return left
                else:
                    name = folder.name
                    above.pop()
                    outside = _open_above(here, above[-1].identity)
                    if outside is None:
                        return [*left, f"{_place(above, name)}: it was moved while it was removed"]
                    os.close(here)
                    here = outside
                    if folder.is_kept:
                        above[-1].is_kept = True
                    else:
                        os.rmdir(name, dir_fd=here)
            except FileNotFoundError:
                pass  # somebody else has removed it
            except OSError as error:
                above[-1].is_kept = True
                if len(left) < _MOST_LEFT:
                    left.append(f"{_place(above, name)}: {error.strerror}")
            yield
    finally:
        os.close(here)


@dataclass
class _OpenFolder:
    """A folder that is being emptied: `todo` are the names in it, `is_kept` if something in it can't be removed."""

    name: str
    identity: tuple[int, int]
    todo: list[str]
    is_kept: bool = False


def _unlink_or_open(parent: int, name: str) -> int | None:
    """Remove an entry, or open it where it is a folder, with all rights for its owner."""
    try:
        os.unlink(name, dir_fd=parent)
    except (IsADirectoryError, PermissionError) as refusal:
        try:
            # Without any right to the folder itself, so that its rights can be changed.
            closed = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        except NotADirectoryError:
            raise refusal from None
        try:
            found = os.fstat(closed)
            if stat.S_IMODE(found.st_mode) & stat.S_IRWXU != stat.S_IRWXU and found.st_uid == os.geteuid():
                os.chmod(f"/proc/self/fd/{closed}", stat.S_IRWXU)  # noqa: PTH101 - of what is open
            return os.open(".", _FOLDER, dir_fd=closed)
        finally:
            os.close(closed)
    return None


def _open_above(folder: int, expected: tuple[int, int]) -> int | None:
    """Open the folder above; None where it is not the expected one."""
    try:
        above = os.open("..", _FOLDER, dir_fd=folder)
    except OSError:
        return None
    if _identity(above) == expected:
        return above
    os.close(above)
    return None


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _place(above: list[_OpenFolder], name: str) -> str:
    """Name an entry by its path below the folder that is removed; of one that is very deep, the end."""
    path = "/".join([*(folder.name for folder in above[1:][-_MOST_LEFT:]), name])
    return path if len(path) <= _MOST_SHOWN else f"...{path[-_MOST_SHOWN:]}"
