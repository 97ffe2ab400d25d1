"""Files whose MD5 sums are taken while they are written, so that nobody has to read gigabytes again for them."""

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


_THREADS = 2  # the sum of a long file is still being taken while the next ones are written
_MOST_AHEAD = 16  # blocks that are written and not yet summed


class _State(NamedTuple):
    """By what to see that a file is still the one that was written."""

    device: int
    inode: int
    size: int
    changed: int


_sums: dict[_State, Future[str]] = {}


@contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """Create a file, and the folders it lies in, to be written from front to back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        summing = _Summing(stream)
        yield summing  # type: ignore[misc]  # typeshed's IO asks for more than a stream that is only written
    _sums[_state_of(path)] = summing.sum()


def md5_of(path: Path) -> str | None:
    """The sum of a file that was created here and has not changed since; it is returned once."""
    coming = _sums.pop(_state_of(path), None)
    return None if coming is None else coming.result()


def _state_of(path: Path) -> _State:
    found = path.stat()
    return _State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@cache
def _threads() -> Iterator[ThreadPoolExecutor]:
    """The process's own in turn; each is a single one, so it sums the blocks of a file one after another."""
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
        """The sum of all that has been written, when it is there; the next file need not wait for it."""
        return self._thread.submit(self._total)

    def _total(self) -> str:
        for block in self._ahead:
            block.result()  # it is done, being the same thread's; this raises what went wrong
        return self._digest.hexdigest()

    def flush(self) -> None:
        if not self._stream.closed:
            self._stream.flush()
