"""Append to and read growing files of JSON lines; incomplete lines are left for the next read."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem

_MAX_READ = 4 << 20


@dataclass(frozen=True)
class Lines:
    """The objects of the lines that were read, and the offset where the next read begins."""

    values: tuple[dict[str, Any], ...]
    offset: int


def append(path: Path, values: Sequence[dict[str, Any]], *, durable: bool = False) -> int:
    """Append lines with one write, after ending a killed writer's incomplete line, and return the file's size."""
    with closing(Appender(path)) as file:
        return file.append(values, durable=durable)


class Appender:
    """A file of lines that stays open between appends, since opening is slow on some file systems."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def append(self, values: Sequence[dict[str, Any]], *, durable: bool = False) -> int:
        """Append lines as `append` does; after a failure the file is opened again for the next ones.

        Raises:
            OSError: they can't be written, or not all of them.
        """
        try:
            return self._append(values, durable=durable)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; harmless when it is not open."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, values: Sequence[dict[str, Any]], *, durable: bool) -> int:
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o644)
        size = os.fstat(self._descriptor).st_size
        torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
        text = "".join(json.dumps(value) + "\n" for value in values)
        content = (b"\n" if torn else b"") + text.encode()
        if os.write(self._descriptor, content) < len(content):  # the disk is full
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        if durable:
            os.fsync(self._descriptor)
        return size + len(content)


def read(path: Path, offset: int = 0) -> Lines:
    """Read the complete lines from `offset` on, skipping what is not a JSON object (damaged or endless lines)."""
    try:
        with files.reading_untrusted(path) as stream:
            stream.seek(offset)
            content = stream.read(_MAX_READ)
    except DataProblem as problem:
        # existence is not checked before, which would cost as much again
        if isinstance(problem.__cause__, FileNotFoundError):
            return Lines((), offset)
        raise
    whole = content[: content.rfind(b"\n") + 1]
    if not whole and len(content) == _MAX_READ:
        return Lines((), offset + len(content))  # valid lines are never that long
    values = []
    for line in whole.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue  # a killed writer's incomplete line, or garbage
        if isinstance(value, dict):
            values.append(value)
    return Lines(tuple(values), offset + len(whole))
