"""Read one member of a zip, at once or as a seekable file; the zip's directory is read by `zip_tree`.

Members are read by position, so that any number of threads can share one open zip.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from bisect import bisect
from collections import deque
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipInfo

from mlebench_console.foundation.problems import DataProblem

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 20
_PACKED_BLOCK = 1 << 18
_KEPT = 8  # latest inflated blocks, for seeking back: a zip within a zip is read from its end
_SPACING = 4 << 20  # bytes between marks at first
_MOST_MARKS = 512  # each takes some fifty kilobytes
_LOCAL = struct.Struct("<4s22x2H")
_NAMES = 512  # bytes; the names in a local header are hardly ever longer


def read(archive: FileIO, member: ZipInfo) -> bytes:
    """Read a whole member of an open zip and check it.

    Raises:
        DataProblem: it is damaged.
    """
    descriptor, size = archive.fileno(), member.compress_size
    found = os.pread(descriptor, _LOCAL.size + _NAMES + size, member.header_offset)
    start = _header_size(archive, member, found)
    packed = found[start : start + size]
    if len(packed) < size:
        packed += os.pread(descriptor, size - len(packed), member.header_offset + start + len(packed))
    content = packed
    if member.compress_type == ZIP_DEFLATED:
        try:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.file_size + 1)
        except zlib.error as error:
            raise _damaged(archive, member, str(error)) from error
    if len(content) != member.file_size:
        raise _damaged(archive, member, f"it does not have the {member.file_size:,} bytes that it claims")
    _check(archive, member, zlib.crc32(content))
    return content


def opened(archive: FileIO, member: ZipInfo) -> io.BufferedReader:
    """Open a member; its checksum is verified when it is read from front to back.

    Raises:
        DataProblem: it is damaged; reading it may raise this too.
    """
    kind = _Deflated if member.compress_type == ZIP_DEFLATED else _Stored
    return io.BufferedReader(kind(archive, member), _BLOCK)


def _header_size(archive: FileIO, member: ZipInfo, found: bytes) -> int:
    if len(found) < _LOCAL.size:
        raise _damaged(archive, member, "it is cut short")
    signature, name, extra = _LOCAL.unpack_from(found)
    if signature != b"PK\3\4":
        raise _damaged(archive, member, "it is not where the directory says")
    return _LOCAL.size + int(name) + int(extra)


def _check(archive: FileIO, member: ZipInfo, crc: int) -> None:
    if crc != member.CRC:
        raise _damaged(archive, member, "its checksum is wrong")


def _damaged(archive: FileIO, member: ZipInfo, why: str) -> DataProblem:
    return DataProblem(
        f"{archive.name} is damaged", f"{member.filename}: {why}", "Remove it to have it downloaded again."
    )


class _Stream(io.RawIOBase):
    def __init__(self, archive: FileIO, member: ZipInfo) -> None:
        super().__init__()
        self._archive = archive
        self._member = member
        head = os.pread(archive.fileno(), _LOCAL.size, member.header_offset)
        self._start = member.header_offset + _header_size(archive, member, head)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._member.file_size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")[: max(self._member.file_size - self._at, 0)]
        if not len(view):
            return 0
        count = self._fill(view)
        self._at += count
        return count

    def _fill(self, view: memoryview) -> int:
        """Put at least one byte from the current position into `view` and return how many."""
        raise NotImplementedError


class _Stored(_Stream):
    """A member that is stored without compression."""

    _checked = 0
    _crc = 0

    def _fill(self, view: memoryview) -> int:
        count = os.preadv(self._archive.fileno(), [view], self._start + self._at)
        if not count:
            raise _damaged(self._archive, self._member, "it is cut short")
        if self._at == self._checked:
            self._checked += count
            self._crc = zlib.crc32(view[:count], self._crc)
            if self._checked == self._member.file_size:
                _check(self._archive, self._member, self._crc)
        return count


@dataclass(frozen=True)
class _Mark:
    """A position in a compressed member from which inflating can continue."""

    end: int
    taken: int
    crc: int
    inflater: zlib._Decompress


class _Deflated(_Stream):
    """A compressed member; it keeps the latest blocks, and marks at intervals for seeking."""

    def __init__(self, archive: FileIO, member: ZipInfo) -> None:
        super().__init__(archive, member)
        self._marks = [_Mark(0, 0, 0, zlib.decompressobj(-zlib.MAX_WBITS))]
        self._spacing = _SPACING
        self._go_to(self._marks[0])

    def _go_to(self, mark: _Mark) -> None:
        self._inflater = mark.inflater.copy()
        self._kept: deque[bytes] = deque(maxlen=_KEPT)
        self._taken = mark.taken  # packed bytes read so far
        self._end = mark.end  # bytes inflated so far
        self._crc = mark.crc

    def _mark(self) -> None:
        self._marks.append(_Mark(self._end, self._taken, self._crc, self._inflater.copy()))
        if len(self._marks) == _MOST_MARKS:
            del self._marks[1::2]
            self._spacing *= 2

    def _fill(self, view: memoryview) -> int:
        nearest = self._marks[bisect(self._marks, self._at, key=lambda mark: mark.end) - 1]
        if self._at < self._end - sum(map(len, self._kept)) or nearest.end > self._end:
            self._go_to(nearest)
        while self._end <= self._at:
            self._inflate()
        start = self._end
        for block in reversed(self._kept):
            start -= len(block)
            if start <= self._at:
                break
        piece = memoryview(block)[self._at - start :][: len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def _inflate(self) -> None:
        packed = self._inflater.unconsumed_tail
        if not packed:
            if self._end >= self._marks[-1].end + self._spacing:
                self._mark()
            left = self._member.compress_size - self._taken
            packed = os.pread(self._archive.fileno(), min(_PACKED_BLOCK, left), self._start + self._taken)
            self._taken += len(packed)
        try:
            block = self._inflater.decompress(packed, _BLOCK)
        except zlib.error as error:
            raise _damaged(self._archive, self._member, str(error)) from error
        if not block and (not packed or self._inflater.eof):
            raise _damaged(self._archive, self._member, "it is cut short")
        if not block:
            return
        self._kept.append(block)
        self._end += len(block)
        self._crc = zlib.crc32(block, self._crc)
        if self._end > self._member.file_size:
            raise _damaged(self._archive, self._member, "it is longer than it claims")
        if self._end == self._member.file_size:
            _check(self._archive, self._member, self._crc)
