"""Download a file such as a competition's zip; it resumes after interruptions, and gets its name only when complete."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import FileIO
from pathlib import Path
from typing import Protocol

from mlebench_console.engine.kaggle import KaggleFailure
from mlebench_console.engine.kaggle.client import Answer, DataResponse, TemporaryFailure
from mlebench_console.engine.space import naming_full_disks, require_space
from mlebench_console.foundation.files import PARTIAL_SUFFIX, sync_directory, write_json

_BLOCK = 1 << 20
_TIMES_DAMAGED = 3

ReportBytes = Callable[[int, int], None]
"""Called with the bytes received and the total bytes (0: unknown)."""


def _origin_of(response: DataResponse) -> dict[str, object] | None:
    """Return the identity and size of the file, as a partial file may only continue the same file; None: unknown."""
    if response.identity is None or response.size is None:
        return None
    return {"identity": response.identity, "size": response.size}


class _Partial:
    """The bytes received so far, with their running MD5."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(target.name + PARTIAL_SUFFIX)
        self._origin_file = target.with_name(target.name + PARTIAL_SUFFIX + ".json")
        self.forget()

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def belongs_to(self, response: DataResponse) -> bool:
        try:
            recorded = json.loads(self._origin_file.read_bytes())
        except (FileNotFoundError, ValueError):
            return False
        return bool(recorded == _origin_of(response))

    def begin(self, response: DataResponse) -> None:
        self.remove()
        origin = _origin_of(response)
        if origin is not None:
            write_json(self._origin_file, origin, durable=False)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._origin_file.unlink(missing_ok=True)
        self.forget()

    def add(self, at: int, chunk: bytes, stream: FileIO) -> None:
        with memoryview(chunk) as left:
            written = 0
            while written < len(chunk):  # a disk that becomes full accepts a part first, and then fails
                written += stream.write(left[written:])
        if at == self._hashed:
            self._md5.update(chunk)
            self._hashed += len(chunk)

    def digest(self) -> str:
        """Return the MD5 of all bytes; those of an earlier process are read back from the file.

        They are read only here, when no connection waits.
        """
        if self._hashed != self.size:
            self.forget()
            with self.path.open("rb", buffering=0) as stream:
                while chunk := stream.read(_BLOCK):
                    self._md5.update(chunk)
                    self._hashed += len(chunk)
        return self._md5.hexdigest()

    def finish(self, target: Path) -> None:
        self.path.replace(target)
        self._origin_file.unlink(missing_ok=True)
        sync_directory(target.parent)

    def forget(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._hashed = 0


class Source(Protocol):
    """A source of data: Kaggle, or another publisher."""

    def data(self, name: str, /) -> AbstractContextManager[DataResponse]:
        """Request data once; the name is the competition's id on Kaggle."""

    def retry(self, call: Callable[[], Answer], gained: Callable[[], int]) -> Answer:
        """Call until it succeeds, or the patience is over; `gained` returns the bytes since it was last called."""


def download(source: Source, name: str, target: Path, *, keep_free: int = 0, report: ReportBytes) -> str:
    """Download data to `target`, and return their MD5.

    Raises:
        Problem: the source refuses, can't be reached, or repeatedly sends damaged data; or the disk is full.
    """
    partial = _Partial(target)
    seen, damaged = partial.size, 0

    def gained() -> int:
        nonlocal seen
        before, seen = seen, partial.size
        return seen - before

    def fetch() -> str | None:
        with source.data(name) as response:
            _receive(response, partial, keep_free, report)
            return response.md5

    with naming_full_disks(target.parent):
        while True:
            expected = source.retry(fetch, gained)
            found = partial.digest()
            if expected is None or expected == found:
                break
            damaged += 1
            partial.remove()
            seen = 0
            if damaged == _TIMES_DAMAGED:
                raise KaggleFailure(
                    "the downloaded data are damaged",
                    f"its MD5 should be {expected} and is {found}, {damaged} times in a row",
                    "Check whether something changes data on the way, such as a proxy.",
                    subject=name,
                )
        partial.finish(target)
    return found


def _receive(response: DataResponse, partial: _Partial, keep_free: int, report: ReportBytes) -> None:
    """Add the missing bytes to the partial file, or start it again if it belongs to another file."""
    size = response.size
    start = partial.size if partial.belongs_to(response) else 0
    if size is not None and start == size:
        return
    if start == 0 or (size is not None and start > size):
        start = 0
        partial.begin(response)
    if size is not None:
        require_space(partial.path.parent, size - start, keep_free=keep_free)
    there = start
    report(there, size or 0)
    with partial.path.open("ab", buffering=0) as stream:
        for at, chunk in response.chunks(start):
            if at != there:  # the server sends the whole file although a part was requested
                stream.truncate(0)
                partial.forget()
            partial.add(at, chunk, stream)
            there = at + len(chunk)
            report(there, size or 0)
        os.fsync(stream.fileno())
    if size is not None and there != size:
        raise TemporaryFailure(f"{there:,} of {size:,} bytes arrived")
