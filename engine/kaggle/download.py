"""Download a file such as a competition's zip; it resumes after interruptions, and gets its name only when complete."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from mlebench_console.engine.downloads import Answer, PartialFile, TemporaryFailure
from mlebench_console.engine.kaggle import KaggleFailure
from mlebench_console.engine.kaggle.client import DataResponse
from mlebench_console.engine.space import naming_full_disks, require_space
from mlebench_console.foundation.files import PARTIAL_SUFFIX, sync_directory, write_json

_TIMES_DAMAGED = 3

ReportBytes = Callable[[int, int], None]
"""Called with the bytes received and the total bytes (0: unknown)."""


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
    partial = PartialFile(target.with_name(target.name + PARTIAL_SUFFIX), "md5")
    origin_file = partial.path.with_name(partial.path.name + ".json")
    damaged = 0

    def fetch() -> str | None:
        with source.data(name) as response:
            _receive(response, partial, origin_file, keep_free, report)
            return response.md5

    with naming_full_disks(target.parent):
        while True:
            expected = source.retry(fetch, partial.gained)
            found = partial.digest()
            if expected is None or expected == found:
                break
            damaged += 1
            partial.remove()
            origin_file.unlink(missing_ok=True)
            if damaged == _TIMES_DAMAGED:
                raise KaggleFailure(
                    "the downloaded data are damaged",
                    f"its MD5 should be {expected} and is {found}, {damaged} times in a row",
                    "Check whether something changes data on the way, such as a proxy.",
                    subject=name,
                )
        with partial.path.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.path.replace(target)
        origin_file.unlink(missing_ok=True)
        sync_directory(target.parent)
    return found


def _receive(
    response: DataResponse, partial: PartialFile, origin_file: Path, keep_free: int, report: ReportBytes
) -> None:
    """Add the missing bytes to the partial file, or start it again if it belongs to another file."""
    size, origin = response.size, _origin_of(response)
    start = partial.size if origin is not None and origin == _recorded(origin_file) else 0
    if size is not None and start == size:
        return
    if start == 0 or (size is not None and start > size):
        start = 0
        partial.remove()
        if origin is not None:
            write_json(origin_file, origin, durable=False)
    if size is not None:
        require_space(partial.path.parent, size - start, keep_free=keep_free)
    report(start, size or 0)
    there = start
    for there in partial.receive(response.chunks(start)):
        report(there, size or 0)
    if size is not None and there != size:
        raise TemporaryFailure(f"{there:,} of {size:,} bytes arrived")


def _origin_of(response: DataResponse) -> dict[str, object] | None:
    """Return the identity and size of the file, as a partial file may only continue the same file; None: unknown."""
    if response.identity is None or response.size is None:
        return None
    return {"identity": response.identity, "size": response.size}


def _recorded(origin_file: Path) -> object:
    try:
        return json.loads(origin_file.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
