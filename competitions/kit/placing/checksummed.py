"""Files whose MD5 sums are computed while they are written, so that gigabytes need not be read again."""

from __future__ import annotations

import hashlib
import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_THREADS = 2  # so that the next files can be summed while a long one still is
_MOST_AHEAD = 16  # blocks that are written but not yet summed


class _State(NamedTuple):
    """Identifies the version of a file that was written."""

    device: int
    inode: int
    size: int
    changed: int


_sums: dict[_State, Future[str]] = {}


@contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """Create a file and its parent folders, and yield a stream to write it from front to back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        summing = _Summing(stream)
        yield summing  # type: ignore[misc]  # typeshed's IO asks for more than a stream that is only written
    _sums[_state_of(path)] = summing.sum()


def md5_of(path: Path) -> str | None:
    """Return the sum of a file that was created here and has not changed since; it can be taken once only."""
    coming = _sums.pop(_state_of(path), None)
    return None if coming is None else coming.result()


def _state_of(path: Path) -> _State:
    found = path.stat()
    return _State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@cache
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Return the process's single-threaded executors in turn; one thread sums a file's blocks in order."""
    return cycle([ThreadPoolExecutor(1) for _ in range(_THREADS)])


class _Summing(io.BufferedIOBase):
    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._digest = hashlib.md5(usedforsecurity=False)
        self._stream = stream
        self._thread = next(_threads())
        self._ahead: deque[Future[None]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer) -> int:
        self._ahead.append(self._thread.submit(self._digest.update, bytes(content)))
        if len(self._ahead) > _MOST_AHEAD:
            self._ahead.popleft().result()
        return self._stream.write(content)

    def sum(self) -> Future[str]:
        """Return a future for the sum of all that was written, so that the next file need not wait."""
        return self._thread.submit(self._total)

    def _total(self) -> str:
        for block in self._ahead:
            block.result()  # done already, as the same thread ran it; raises its error, if any
        return self._digest.hexdigest()

    def flush(self) -> None:
        if not self._stream.closed:
            self._stream.flush()
