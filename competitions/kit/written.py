"""Files whose MD5 sums are taken while they are written, so that nobody has to read gigabytes again for them."""

from __future__ import annotations

import hashlib
import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_MOST_AHEAD = 16  # blocks that are written and not yet summed


class _State(NamedTuple):
    """By what to see that a file is still the one that was written."""

    device: int
    inode: int
    size: int
    changed: int


_sums: dict[_State, str] = {}


@contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """Create a file, and the folders it lies in, to be written from front to back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        summing = _Summing(stream)
        yield summing  # type: ignore[misc]  # typeshed's IO asks for more than a stream that is only written
    _sums[_state_of(path)] = summing.sum()


def md5_of(path: Path) -> str | None:
    """The sum of a file that was created here and has not changed since; it is told once."""
    return _sums.pop(_state_of(path), None)


def _state_of(path: Path) -> _State:
    found = path.stat()
    return _State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@cache
def _thread() -> ThreadPoolExecutor:
    """The process's own, and a single one: so it sums the blocks of a file one after another."""
    return ThreadPoolExecutor(1)


class _Summing(io.BufferedIOBase):
    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._digest = hashlib.md5(usedforsecurity=False)
        self._stream = stream
        self._ahead: deque[Future[None]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer) -> int:
        self._ahead.append(_thread().submit(self._digest.update, bytes(content)))
        if len(self._ahead) > _MOST_AHEAD:
            self._ahead.popleft().result()
        return self._stream.write(content)

    def sum(self) -> str:
        """The sum of all that has been written."""
        while self._ahead:
            self._ahead.popleft().result()
        return self._digest.hexdigest()

    def flush(self) -> None:
        if not self._stream.closed:
            self._stream.flush()
