"""Write files atomically, and read safely what an agent may have written."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mlebench_console.foundation.problems import DataProblem, reading, refuse_pointer

PARTIAL_SUFFIX = ".partial"


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` for writing and rename it to `path` at the end.

    When the block raises, `path` stays unchanged and the temporary file is removed. With
    `durable`, content and name have reached the disk when the block ends.
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
    """Remove the temporary files of killed writers; only for the sole writer of the folder."""
    for left in folder.glob(f".*{PARTIAL_SUFFIX}"):
        left.unlink()


def write_bytes(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write `content` to `path` atomically."""
    with replacing(path, durable=durable) as stream:
        stream.write(content)


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Write `text` to `path` atomically, as UTF-8 with its line ends unchanged."""
    write_bytes(path, text.encode(), durable=durable)


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Write `value` to `path` as JSON, atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n", durable=durable)


def read_csv(path: Path, columns: Iterable[str], kind: str) -> list[dict[str, str]]:
    """Read the rows of a CSV file that has at least these columns; lines that begin with `#` are comments.

    Raises:
        DataProblem: it can't be read, or lacks a column, so that it is not a `kind`.
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
    """Return rows as the text of a CSV file."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def sync_directory(path: Path) -> None:
    """Make the entries of a directory durable, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(path: Path) -> None:
    """Make everything written to the file system of `path` durable; for many files at once.

    Other file systems are not synced: a hanging network file system must not block the caller.
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
    """A file has more bytes than allowed."""


class NotRegular(DataProblem):
    """A name stands for a link, a folder or the like instead of a regular file."""


@contextmanager
def reading_untrusted(path: Path, *, max_bytes: int | None = None) -> Iterator[io.BufferedReader]:
    """Open a file that an agent may have written: regular files only, never through a link.

    It is opened without blocking, because it may be a FIFO, and checked after opening, so that it cannot be
    replaced in between. Only the last part of the path is guarded: the directory must be one that the agent
    cannot rename, or that nobody writes to any more.

    Raises:
        DataProblem: it can't be opened; NotRegular: it is a link, or no file; TooLarge: it is larger than `max_bytes`.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise NotRegular(f"{path.name} was not read", "is a symbolic link") from error
        raise DataProblem(f"{path.name} was not read", error.strerror or str(error)) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular(f"{path.name} was not read", "it is not a regular file")
        if max_bytes is not None and found.st_size > max_bytes:
            raise TooLarge(
                f"{path.name} was not read",
                f"it has {found.st_size:,} bytes, at most {max_bytes:,} are taken",
            )
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file that an agent may have written; empty where it can't be read."""
    try:
        with reading_untrusted(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (DataProblem, OSError):
        return ""
