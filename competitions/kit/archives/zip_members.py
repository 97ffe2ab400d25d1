"""The bytes of one member of a zip, at once or as a file that can be sought in; it knows nothing of directories.

Members are read by position, so that any number of threads can share one open zip.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from bisect import bisect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foundation.problems import DataProblem

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STORED, DEFLATED = 0, 8
_BLOCK = 1 << 20
_PACKED_BLOCK = 1 << 18
_KEPT = 8  # blocks that can be gone back to: a zip within a zip is begun at its end
_SPACING = 4 << 20  # bytes between marks at first
_MOST_MARKS = 512  # of which each takes some fifty kilobytes
_LOCAL = struct.Struct("<4s22x2H")
_NAMES = 512  # bytes that the names in a local header hardly ever exceed


@dataclass(frozen=True)
class Member:
    """Where a member lies, and what it must come to.

    Attributes:
        name: for messages about damage.
        offset: where its local header begins.
        packed: how many bytes it takes in the zip.
        size: how many it has.
    """

    name: str
    method: int
    offset: int
    packed: int
    size: int
    crc: int


Damaged = Callable[[Member, str], DataProblem]


def read(descriptor: int, member: Member, damaged: Damaged) -> bytes:
    """All of a member, checked.

    Raises:
        DataProblem: it is damaged, as made by `damaged`.
    """
    found = os.pread(descriptor, _LOCAL.size + _NAMES + member.packed, member.offset)
    start = _header_size(found, member, damaged)
    packed = found[start : start + member.packed]
    if len(packed) < member.packed:
        packed += os.pread(descriptor, member.packed - len(packed), member.offset + start + len(packed))
    content = packed
    if member.method == DEFLATED:
        try:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
        except zlib.error as error:
            raise damaged(member, str(error)) from error
    if len(content) != member.size:
        raise damaged(member, f"it does not have the {member.size:,} bytes that it claims")
    _check(zlib.crc32(content), member, damaged)
    return content


def opened(descriptor: int, member: Member, damaged: Damaged) -> io.BufferedReader:
    """Open a member; its checksum is compared when it is read from front to back.

    Raises:
        DataProblem: it is damaged; reading may raise it too.
    """
    kind = _Deflated if member.method == DEFLATED else _Stored
    return io.BufferedReader(kind(descriptor, member, damaged), _BLOCK)


def _header_size(found: bytes, member: Member, damaged: Damaged) -> int:
    if len(found) < _LOCAL.size:
        raise damaged(member, "it is cut short")
    signature, name, extra = _LOCAL.unpack_from(found)
    if signature != b"PK\3\4":
        raise damaged(member, "it is not where the directory says")
    return _LOCAL.size + int(name) + int(extra)


def _check(crc: int, member: Member, damaged: Damaged) -> None:
    if crc != member.crc:
        raise damaged(member, "its checksum is wrong")


class _Stream(io.RawIOBase):
    def __init__(self, descriptor: int, member: Member, damaged: Damaged) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._member = member
        self._damaged = damaged
        head = os.pread(descriptor, _LOCAL.size, member.offset)
        self._start = member.offset + _header_size(head, member, damaged)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._member.size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")[: max(self._member.size - self._at, 0)]
        if not len(view):
            return 0
        count = self._fill(view)
        self._at += count
        return count

    def _fill(self, view: memoryview) -> int:
        """Put at least one byte of what stands at the present place into `view`."""
        raise NotImplementedError


class _Stored(_Stream):
    """A member that lies in the zip as it is."""

    _checked = 0
    _crc = 0

    def _fill(self, view: memoryview) -> int:
        count = os.preadv(self._descriptor, [view], self._start + self._at)
        if not count:
            raise self._damaged(self._member, "it is cut short")
        if self._at == self._checked:
            self._checked += count
            self._crc = zlib.crc32(view[:count], self._crc)
            if self._checked == self._member.size:
                _check(self._crc, self._member, self._damaged)
        return count


@dataclass(frozen=True)
class _Mark:
    """A place in a compressed member that inflating can go on from."""

    end: int
    taken: int
    crc: int
    inflater: zlib._Decompress


class _Deflated(_Stream):
    """A compressed member; the last blocks are kept, and marks along the way to go back or ahead to."""

    def __init__(self, descriptor: int, member: Member, damaged: Damaged) -> None:
        super().__init__(descriptor, member, damaged)
        self._marks = [_Mark(0, 0, 0, zlib.decompressobj(-zlib.MAX_WBITS))]
        self._spacing = _SPACING
        self._go_to(self._marks[0])

    def _go_to(self, mark: _Mark) -> None:
        self._inflater = mark.inflater.copy()
        self._kept: deque[bytes] = deque(maxlen=_KEPT)
        self._taken = mark.taken  # of the packed bytes
        self._end = mark.end  # how far it has been inflated
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
            left = self._member.packed - self._taken
            packed = os.pread(self._descriptor, min(_PACKED_BLOCK, left), self._start + self._taken)
            self._taken += len(packed)
        try:
            block = self._inflater.decompress(packed, _BLOCK)
        except zlib.error as error:
            raise self._damaged(self._member, str(error)) from error
        if not block and (not packed or self._inflater.eof):
            raise self._damaged(self._member, "it is cut short")
        if not block:
            return
        self._kept.append(block)
        self._end += len(block)
        self._crc = zlib.crc32(block, self._crc)
        if self._end > self._member.size:
            raise self._damaged(self._member, "it is longer than it claims")
        if self._end == self._member.size:
            _check(self._crc, self._member, self._damaged)
