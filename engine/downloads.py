"""Receive a file in pieces, and continue after interruptions; who sends it is up to `kaggle` and `datasets`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from mlebench_console.foundation.backoff import Backoff
from mlebench_console.foundation.clock import Clock

BACKOFF = Backoff(first=1.0, most=600.0, jitter=0.25)
_BLOCK = 1 << 20
# After this many interruptions with little data each, a connection counts as making no progress.
_GAINS_MUCH = 1 << 20
_MOST_SMALL_GAINS = 4

Wait = Callable[[float, str], None]
"""Called with how long to wait and why; it waits, and may raise to give up."""

Answer = TypeVar("Answer")


def sleep(seconds: float, why: str) -> None:
    """Wait without reporting it."""
    del why
    time.sleep(seconds)


class TemporaryFailure(Exception):
    """A failure that a retry may resolve; never leaves the engine's packages.

    Attributes:
        why: the reason, without addresses, which may contain signatures.
        retry_after: seconds to wait, where the server says how long.
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.retry_after = retry_after


def retrying(
    call: Callable[[], Answer], gained: Callable[[], int], *, patience: float, wait: Wait, clock: Clock
) -> Answer:
    """Call until it succeeds, or the patience is over.

    Args:
        call: what to do.
        gained: returns the bytes received since it was last called; progress extends the patience.
        patience: for how many seconds it may fail; 0: no retries, but what makes progress continues.
        wait: waits before a retry.
        clock: measures the time.

    Raises:
        TemporaryFailure: the last failure, after it has failed for too long.
    """
    failures, since = 0, 0.0
    while True:
        try:
            return call()
        except TemporaryFailure as trouble:
            now, bytes_gained = clock.monotonic(), gained()
            if failures == 0 or bytes_gained >= _GAINS_MUCH:
                failures, since = 0, now
            failures += 1
            seconds = BACKOFF.seconds(failures, at_least=trouble.retry_after or 0.0)
            is_progressing = bytes_gained > 0 and failures <= _MOST_SMALL_GAINS
            if now + seconds - since > patience and not is_progressing:
                raise
            wait(seconds, trouble.why)


class PartialFile:
    """The bytes of a file that have been received, with their running checksum."""

    def __init__(self, path: Path, algorithm: str) -> None:
        """Continue with the bytes of an earlier process, if there are some."""
        self.path = path
        self._algorithm = algorithm
        self._seen = self.size
        self._start_again()

    @property
    def size(self) -> int:
        """How many bytes have been received."""
        return self.path.stat().st_size if self.path.exists() else 0

    def gained(self) -> int:
        """Return how many bytes were received since the last call; see `retrying`."""
        before, self._seen = self._seen, self.size
        return self._seen - before

    def receive(self, chunks: Iterable[tuple[int, bytes]]) -> Iterator[int]:
        """Add pieces, each with its offset, and yield the size after each of them.

        A piece from the file's beginning, instead of the next one, replaces what is there: not all servers send parts.
        """
        there = self.size
        with self.path.open("ab", buffering=0) as stream:
            for at, chunk in chunks:
                if at != there:
                    stream.truncate(0)
                    self._start_again()
                with memoryview(chunk) as left:
                    written = 0
                    while written < len(
                        chunk
                    ):  # a disk that becomes full accepts a part first, and then fails
                        written += stream.write(left[written:])
                if at == self._summed:
                    self._sum.update(chunk)
                    self._summed += len(chunk)
                there = at + len(chunk)
                yield there

    def digest(self) -> str:
        """Return the checksum of all bytes; those of an earlier process are read back from the file.

        They are read only here, when no connection waits.
        """
        if self._summed != self.size:
            self._start_again()
            with self.path.open("rb", buffering=0) as stream:
                while chunk := stream.read(_BLOCK):
                    self._sum.update(chunk)
                    self._summed += len(chunk)
        return self._sum.hexdigest()

    def remove(self) -> None:
        """Remove it, to begin again."""
        self.path.unlink(missing_ok=True)
        self._seen = 0
        self._start_again()

    def _start_again(self) -> None:
        self._sum = hashlib.new(self._algorithm, usedforsecurity=False)
        self._summed = 0
