"""The log of an agent's output: its beginning and its end, limited in size, with an index of times.

Written in the container, read by the host during and after the run. Standard library only, because it is copied into
container images. It handles bytes, not text: readers must sanitize them.

The first half of the limit goes to FILE; when that is full, FILE gets `CUT_MARK` as its last line and the output
continues in segments `FILE.<offset, 16 digits>`, each of at most a quarter of the limit. The last segments are kept,
at most half of the limit together. While a disk can't be written to, only the end of the output is kept: FILE gets
`GAP_MARK` instead as soon as there is room, and the output continues in a segment. So a reader can determine at any
moment what is missing, and a crash leaves no half-moved file. `FILE` with the suffix `.times` has lines
`offset unix_time`, at most one per second, which say when the output was printed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mlebench_console.environment.container.redaction import StreamRedactor

CUT_MARK = b"\n[log limit reached: output goes on in a second part, of which only the end is kept]\n"
# Of the same length, by which a reader removes either.
GAP_MARK = b"\n[output is missing here: it could not be written to the disk]".ljust(len(CUT_MARK) - 1) + b"\n"
_MOST_SEGMENTS = 16
_RETRY_SECONDS = 1.0
_MOST_WAITING = 64 << 10


class CappedLog:
    """Writes output without secrets, limited in size, with an index of times.

    Attributes:
        offset: the number of bytes printed, kept or not.
    """

    def __init__(self, path: Path, limit: int, *, hide: Iterable[str] = ()) -> None:
        """Open the files, or as soon as the disk allows it.

        Args:
            path: of the first part.
            limit: bytes of output to keep.
            hide: secret values to replace by a mark.
        """
        self._path = path
        self._segments_size = limit // 2
        self._segment_size = max(limit // 4, 1)
        self._stream: IO[bytes] | None = None
        self._times = _TimeIndex(path.with_suffix(".times"))
        self._room = limit // 2
        self._length = 0
        self._segments: list[tuple[Path, int]] = []
        self._redactor = StreamRedactor(hide)
        self._waiting = bytearray()  # output that is not yet written
        self._is_cut = False  # whether output just before that was dropped
        self._lost = self._gaps = 0
        self._why = ""
        self._retry_at = 0.0
        self.offset = 0
        self._flush()

    @property
    def error(self) -> str:
        """How much was not kept, and why; empty when everything was."""
        if not self._gaps:
            return ""
        times = "" if self._gaps == 1 else f", at {self._gaps} times"
        return f"{self._lost:,} bytes of output were not kept{times}: {self._why}"

    def write(self, data: bytes) -> None:
        """Add output; a disk that can't be written to never stops the command, and is tried again after a second."""
        self._add(self._redactor.feed(data))

    def close(self) -> None:
        """Write what the redactor held back, and close the files."""
        self._add(self._redactor.rest())
        self._flush()
        self._drop(len(self._waiting))
        self._times.close()
        self._close_stream()

    def _add(self, data: bytes) -> None:
        self._waiting += data
        self.offset += len(data)
        if time.monotonic() >= self._retry_at:
            self._flush()
        self._drop(len(self._waiting) - _MOST_WAITING)

    def _drop(self, count: int) -> None:
        """Drop the oldest bytes that wait; adjacent drops are one gap."""
        if count > 0:
            del self._waiting[:count]
            self._lost += count
            self._gaps += not self._is_cut
            self._is_cut = True

    def _flush(self) -> None:
        """Write what waits, as far as the disk allows."""
        try:
            if self._stream is None and not self._is_cut:
                self._stream = self._path.open("wb", buffering=0)
            if self._waiting and self._is_cut:
                self._next_segment(GAP_MARK)
                self._is_cut = False
            while self._waiting:
                if self._room == 0:
                    self._next_segment(CUT_MARK)
                assert self._stream is not None  # opened above, or for a segment
                written = self._stream.write(self._waiting[: self._room]) or 0
                self._times.note(self._position)
                self._room -= written
                self._length += written
                del self._waiting[:written]
        except OSError as failure:
            self._why = str(failure)
            self._retry_at = time.monotonic() + _RETRY_SECONDS

    @property
    def _position(self) -> int:
        """The offset of the first byte that waits."""
        return self.offset - len(self._waiting)

    def _next_segment(self, mark: bytes) -> None:
        """Begin another segment; the first part is ended with the mark, which is retried if it fails."""
        if not self._segments:
            with self._path.open("ab", buffering=0) as head:
                head.truncate(self._length)  # remove an incomplete mark of an earlier try
                if head.write(mark) < len(mark):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        segment = self._path.with_name(f"{self._path.name}.{self._position:016d}")
        stream = segment.open("wb", buffering=0)
        self._close_stream()
        if self._segments:
            self._segments[-1] = (self._segments[-1][0], self._length)
        self._stream, self._length, self._room = stream, 0, self._segment_size
        self._segments.append((segment, 0))
        while (
            len(self._segments) > _MOST_SEGMENTS
            or sum(length for _, length in self._segments) + self._segment_size > self._segments_size
        ) and len(self._segments) > 1:
            self._segments.pop(0)[0].unlink(missing_ok=True)

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            # A network disk may report an earlier failure here; what was lost is unknown.
            with suppress(OSError):
                stream.close()


class _TimeIndex:
    """The file with the times; a line that can't be written is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream: IO[bytes] | None = None
        self._second = -1
        self._length = 0

    def note(self, offset: int) -> None:
        """Record that the byte at `offset` was printed now."""
        now = time.time()
        if int(now) == self._second:
            return
        self._second = int(now)
        line = b"%d %.3f\n" % (offset, now)
        with suppress(OSError):  # a full disk shows in the output itself
            if self._stream is None:
                self._stream = self._path.open("wb", buffering=0)
            self._stream.truncate(self._length)
            self._stream.seek(self._length)
            if self._stream.write(line) == len(line):
                self._length += len(line)

    def close(self) -> None:
        """Close the file, without an incomplete last line."""
        if self._stream is not None:
            with suppress(OSError):  # as above
                self._stream.truncate(self._length)
                self._stream.close()


@dataclass(frozen=True)
class LogPart:
    """A part of the output that is kept: its bytes `start` to `start + length`."""

    path: Path
    start: int
    length: int


def log_parts(log: Path) -> tuple[LogPart, ...]:
    """Return the kept parts in order; what lies between one's end and the next one's start was dropped.

    A part may vanish while it is read, since the oldest segments are removed: call this again then.
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
