"""The log of what an agent prints: bytes within a bound, the beginning and the end, with an index of times.

Written in the container, read by the host live or finished. Standard library only, because it is copied into
container images. It knows positions, not text: making the bytes harmless is the reader's business.

The first half of the limit goes to FILE; when that is full FILE gets `CUT_MARK` as its last line and the
output goes on in segments `FILE.<offset, 16 digits>`, each a quarter of the limit, of which the last two are
kept. So a reader can tell at any moment what is missing, and no death leaves a half-moved file. `FILE` with
the suffix `.times` has lines `offset unix_time`, at most one a second: what was printed when.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from environment.container.redaction import StreamRedactor

CUT_MARK = b"\n[log limit reached: output goes on in a second part, of which only the end is kept]\n"


class CappedLog:
    """Output as it came, but for secrets, with a bound on disk and an index of times."""

    def __init__(self, path: Path, limit: int, *, hide: Iterable[str] = ()) -> None:
        """Open the files.

        Args:
            path: of the first part.
            limit: bytes of output to keep.
            hide: values in whose place a mark is kept.
        """
        self._path = path
        self._head_room = limit // 2
        self._segment_size = max(limit // 4, 1)
        self._stream: IO[bytes] = path.open("wb", buffering=0)
        self._times: IO[bytes] = path.with_suffix(".times").open("wb", buffering=0)
        self._room = self._head_room
        self._segments: list[Path] = []
        self._timed_second = -1
        self._redactor = StreamRedactor(hide)
        self.offset, self.error = 0, ""

    def write(self, data: bytes) -> None:
        """Take output; a full disk is remembered in `error` and never stops the command."""
        self._take(self._redactor.feed(data))

    def close(self) -> None:
        """Keep what was held back as a possible beginning of a secret, and let go of the files."""
        self._take(self._redactor.rest())
        self._stream.close()
        self._times.close()

    def _take(self, data: bytes) -> None:
        if not data:
            return
        if not self.error:
            try:
                self._keep(data)
            except OSError as failure:
                self.error = f"output from byte {self.offset} on was not kept: {failure}"
        self.offset += len(data)

    def _keep(self, data: bytes) -> None:
        now = time.time()
        if int(now) != self._timed_second:
            self._timed_second = int(now)
            self._times.write(b"%d %.3f\n" % (self.offset, now))
        view = memoryview(data)
        position = self.offset
        while view:
            if self._room == 0:
                self._next_segment(position)
            written = self._stream.write(view[: self._room]) or 0
            self._room -= written
            position += written
            view = view[written:]

    def _next_segment(self, position: int) -> None:
        if not self._segments:
            self._stream.write(CUT_MARK)
        self._stream.close()
        segment = self._path.with_name(f"{self._path.name}.{position:016d}")
        self._stream = segment.open("wb", buffering=0)
        self._room = self._segment_size
        self._segments.append(segment)
        if len(self._segments) > 2:
            self._segments.pop(0).unlink()


@dataclass(frozen=True)
class LogPart:
    """A part of the output that is kept: bytes `start` to `start + length` of what was printed."""

    path: Path
    start: int
    length: int


@dataclass(frozen=True)
class LogTimes:
    """When which byte was printed: two columns of equal length, both rising."""

    offsets: tuple[int, ...]
    moments: tuple[float, ...]

    def offset_at(self, moment: float) -> int:
        """Find the byte where the output of `moment` begins, to the second."""
        place = bisect_right(self.moments, moment) - 1
        return self.offsets[place] if place >= 0 else 0


def log_parts(log: Path) -> tuple[LogPart, ...]:
    """List the kept parts in order; a gap between one's end and the next one's start was cut.

    A part may vanish while it is read, since the warden drops the oldest segment: look again then.
    """
    segments = []
    for path in log.parent.glob(f"{log.name}.*"):
        offset = path.name[len(log.name) + 1 :]
        if offset.isdigit():
            with suppress(FileNotFoundError):
                segments.append(LogPart(path, int(offset), path.stat().st_size))
    segments.sort(key=lambda part: part.start)
    if not log.exists():
        return tuple(segments)
    head = log.stat().st_size
    return (LogPart(log, 0, head - len(CUT_MARK) if segments else head), *segments)


def log_times(log: Path) -> LogTimes:
    """Read the time index of a log; a last line that is not whole yet is left out."""
    index = log.with_suffix(".times")
    lines = index.read_bytes().split(b"\n")[:-1] if index.exists() else []
    pairs = [line.split() for line in lines]
    return LogTimes(tuple(int(pair[0]) for pair in pairs), tuple(float(pair[1]) for pair in pairs))
