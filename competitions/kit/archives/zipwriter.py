"""Writing a zip from members of other zips without touching their compressed bytes; it compresses nothing itself."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
import numpy.typing as npt

from competitions.kit.archives.zipdirectory import Members
from competitions.raw import RawPath
from competitions.task import Progress
from foundation.problems import DataProblem

_LOCAL = np.dtype(
    [
        *(("signature", "<u4"), ("version", "<u2"), ("flags", "<u2"), ("method", "<u2"), ("stamp", "<u4")),
        *(("crc", "<u4"), ("packed", "<u4"), ("size", "<u4"), ("name", "<u2"), ("extra", "<u2")),
    ]
)
_CENTRAL = np.dtype(
    [
        *(("signature", "<u4"), ("made", "<u2"), ("version", "<u2"), ("flags", "<u2"), ("method", "<u2")),
        *(("stamp", "<u4"), ("crc", "<u4"), ("packed", "<u4"), ("size", "<u4"), ("name", "<u2")),
        *(("extra", "<u2"), ("comment", "<u2"), ("disk", "<u2"), ("inner", "<u2"), ("attributes", "<u4")),
        ("offset", "<u4"),
    ]
)
_LOCAL_SIGNATURE, _CENTRAL_SIGNATURE = 0x04034B50, 0x02014B50
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_EXTRA_HEAD = struct.Struct("<2H")
_LOCATOR64 = struct.Struct("<4sIQI")

_U16 = 0xFFFF
_U32 = 0xFFFFFFFF
_UTF8 = 0x800
_ENCRYPTED = 0x1
_UNIX = 3 << 8
_MODE = 0o100644 << 16
_STAMP = 1 << 21 | 1 << 16  # the first day of 1980, where the time of DOS begins
_PLAIN, _WIDE = 20, 45  # versions of the format: deflate, sizes of 64 bits
_STRETCH = 4 << 20  # bytes read at a time
_GAP = 64 << 10  # bytes of unwanted members that are rather read than jumped over
_HEADER = 1 << 10  # bytes that a local header with its name hardly ever exceeds
_MOST_WAITING = 256 << 20
_PIECES = 1000  # the system takes 1024 at a time

_Numbers = npt.NDArray[np.int64]


class _Waiting:
    """Members that are read and not written yet, so that those that become neighbours are written at one go."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[tuple[bytes, bytes, memoryview]] = []
        self._offsets: list[_Numbers] = []
        self._ends: list[_Numbers] = []

    def add(
        self, pieces: list[tuple[bytes, bytes, memoryview]], offsets: _Numbers, ends: _Numbers, size: int
    ) -> None:
        """Keep members whose bytes lie in a block of this size, and where in the target each begins and ends."""
        self._pieces += pieces
        self._offsets.append(offsets)
        self._ends.append(ends)
        self.size += size

    def runs(self) -> Iterator[tuple[int, list[bytes | memoryview]]]:
        """The pieces of members that follow one another in the target, and where the first of them begins."""
        if not self._pieces:
            return
        offsets, ends = np.concatenate(self._offsets), np.concatenate(self._ends)
        order = np.argsort(offsets)
        apart = np.flatnonzero(offsets[order][1:] != ends[order][:-1]) + 1
        for start, stop in itertools.pairwise([0, *apart.tolist(), len(order)]):
            rows = order[start:stop].tolist()
            members = map(self._pieces.__getitem__, rows)
            yield int(offsets[rows[0]]), list(itertools.chain.from_iterable(members))


class ZipWriter:
    """A zip being written; its directory is written when the block is left without an error."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("xb", buffering=0)
        self._directory: list[bytes] = []
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_directory()
        finally:
            self._stream.close()

    def add_compressed(self, source: RawPath, members: Members, names: Sequence[str], tell: Progress) -> None:
        """Append members of the zip at `source` under new names, their packed bytes unchanged.

        They are put in the order of their new names and all get the same time: where a member lay in the
        source, and since when, may tell of which class it is.

        Args:
            source: the zip that the members are of.
            members: what to append, by their place in the source, from front to back.
            names: the new name of each.
            tell: the progress hook.

        Raises:
            DataProblem: a member is encrypted, cut short or not where the source says.
        """
        encrypted = members.flags & _ENCRYPTED != 0
        if encrypted.any():
            name = members.names[int(encrypted.argmax())]
            raise DataProblem(f"Archive member {name!r} was not taken", "it is encrypted")
        if not len(members):
            return
        encoded = [name.encode() for name in names]
        heads, tails = _local_headers(members, encoded)
        lengths = _LOCAL.itemsize + _lengths(tails) + members.packed
        order = sorted(range(len(encoded)), key=encoded.__getitem__)
        offsets = np.empty_like(lengths)
        offsets[order] = self._stream.tell() + np.cumsum(lengths[order]) - lengths[order]
        file_name = Path(self._stream.name).name
        waiting = _Waiting()
        with source.open("rb") as taken:
            for first, end in _batches(members):
                batch = slice(first, end)
                self._take(taken, members.at(batch), heads[batch], tails[batch], offsets[batch], waiting)
                if waiting.size > _MOST_WAITING:
                    self._write_waiting(waiting)
                    waiting = _Waiting()
                tell(file_name, end, len(members))
        self._write_waiting(waiting)
        self._stream.seek(int((offsets + lengths).max()))
        heads, tails = _central_headers(members, encoded, offsets)
        for row in order:
            self._directory += (heads[row], tails[row])
        self._count += len(members)

    def _take(
        self,
        source: IO[bytes],
        members: Members,
        heads: list[bytes],
        tails: list[bytes],
        offsets: _Numbers,
        waiting: _Waiting,
    ) -> None:
        first = int(members.offsets[0])
        length = int(members.offsets[-1] + members.packed[-1]) - first + _HEADER
        source.seek(first)
        data = source.read(min(length, 2 * _STRETCH))
        starts = _data_starts(data, members.offsets - first, members.names)
        ends = starts + members.packed
        cut = ends[:-1] > len(data)
        if cut.any():
            raise _cut_short(members.names[int(cut.argmax())])
        view = memoryview(data)
        packed = map(view.__getitem__, map(slice, starts.tolist(), ends.tolist()))
        after = offsets + _LOCAL.itemsize + _lengths(tails) + members.packed
        # only the last member of a batch can reach beyond what was read
        beyond = max(int(ends[-1]) - len(data), 0)
        held = np.append(after[:-1], after[-1] - beyond)
        waiting.add(list(zip(heads, tails, packed, strict=True)), offsets, held, len(data))
        self._copy_rest(source, beyond, int(after[-1]), members.names[-1])

    def _write_waiting(self, waiting: _Waiting) -> None:
        for offset, pieces in waiting.runs():
            self._write_pieces(pieces, offset)

    def _write_pieces(self, pieces: list[bytes | memoryview], offset: int) -> None:
        for start in range(0, len(pieces), _PIECES):
            group = pieces[start : start + _PIECES]
            size = sum(map(len, group))
            written = os.pwritev(self._stream.fileno(), group, offset)
            if written < size:  # a disk that becomes full takes a part before it refuses
                self._write_at(b"".join(group)[written:], offset + written)
            offset += size

    def _write_at(self, content: bytes, offset: int) -> None:
        left = memoryview(content)
        while left:
            written = os.pwrite(self._stream.fileno(), left, offset)
            left, offset = left[written:], offset + written

    def _copy_rest(self, source: IO[bytes], left: int, end: int, name: str) -> None:
        while left > 0:
            block = source.read(min(left, _STRETCH))
            if not block:
                raise _cut_short(name)
            self._write_at(block, end - left)
            left -= len(block)

    def _write_directory(self) -> None:
        start = self._stream.tell()
        directory = b"".join(self._directory)
        count, size, end = self._count, len(directory), start + len(directory)
        tail = b""
        if count >= _U16 or size >= _U32 or start >= _U32:
            tail += _END64.pack(
                b"PK\6\6", _END64.size - 12, _WIDE, _WIDE, 0, 0, count, count, size, start
            ) + _LOCATOR64.pack(b"PK\6\7", 0, end, 1)
        count, size, start = min(count, _U16), min(size, _U32), min(start, _U32)
        end_record = _END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0)
        self._write_at(directory + tail + end_record, self._stream.tell())


def _batches(members: Members) -> Iterator[tuple[int, int]]:
    """First and end of runs of members that lie close together, each run a few megabytes of the source."""
    reached = members.offsets + members.packed + _HEADER
    stretches = members.offsets // _STRETCH
    apart = (members.offsets[1:] - reached[:-1] > _GAP) | (stretches[1:] != stretches[:-1])
    edges = [0, *(np.flatnonzero(apart) + 1).tolist(), len(members)]
    return itertools.pairwise(edges)


def _data_starts(data: bytes, headers: _Numbers, names: Sequence[str]) -> _Numbers:
    """Where the packed bytes begin, by the local headers at these places."""
    cut = headers + _LOCAL.itemsize > len(data)
    if cut.any():
        raise _cut_short(names[int(cut.argmax())])
    letters = np.frombuffer(data, dtype=np.uint8)
    found = {name: _gathered(letters, headers, name) for name in ("signature", "name", "extra")}
    wrong = found["signature"] != _LOCAL_SIGNATURE
    if wrong.any():
        name = names[int(wrong.argmax())]
        raise DataProblem(f"Archive member {name!r} is not where the zip says", "the zip is damaged")
    starts: _Numbers = headers + _LOCAL.itemsize + found["name"] + found["extra"]
    return starts


def _gathered(letters: npt.NDArray[np.uint8], headers: _Numbers, field: str) -> _Numbers:
    kind, start = _LOCAL.fields[field][:2]  # type: ignore[index]  # a structured type has fields
    values = np.zeros(len(headers), dtype=np.int64)
    for place in range(kind.itemsize):
        values |= letters[headers + (start + place)].astype(np.int64) << 8 * place
    return values


def _cut_short(name: str) -> DataProblem:
    return DataProblem(f"Archive member {name!r} is cut short", "the zip is incomplete")


def _local_headers(members: Members, names: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    wide = np.maximum(members.packed, members.sizes) >= _U32
    records = np.zeros(len(members), dtype=_LOCAL)
    records["signature"] = _LOCAL_SIGNATURE
    records["version"] = np.where(wide, _WIDE, _PLAIN)
    records["packed"] = np.where(wide, _U32, members.packed)
    records["size"] = np.where(wide, _U32, members.sizes)
    records["extra"] = np.where(wide, _EXTRA_HEAD.size + 16, 0)
    extras = {
        row: _extra(int(members.sizes[row]), int(members.packed[row]))
        for row in np.flatnonzero(wide).tolist()
    }
    return _rows(records, members, names, extras)


def _central_headers(
    members: Members, names: list[bytes], offsets: _Numbers
) -> tuple[list[bytes], list[bytes]]:
    fields = {"size": members.sizes, "packed": members.packed, "offset": offsets}
    wide = np.column_stack([values >= _U32 for values in fields.values()])
    records = np.zeros(len(members), dtype=_CENTRAL)
    records["signature"] = _CENTRAL_SIGNATURE
    records["version"] = np.where(wide.any(axis=1), _WIDE, _PLAIN)
    records["made"] = records["version"] | _UNIX
    for field, values in fields.items():
        records[field] = np.minimum(values, _U32)
    records["extra"] = np.where(wide.any(axis=1), _EXTRA_HEAD.size + 8 * wide.sum(axis=1), 0)
    records["attributes"] = _MODE
    extras = {
        row: _extra(*(int(values[row]) for values in fields.values() if values[row] >= _U32))
        for row in np.flatnonzero(wide.any(axis=1)).tolist()
    }
    return _rows(records, members, names, extras)


def _extra(*numbers: int) -> bytes:
    return _EXTRA_HEAD.pack(1, 8 * len(numbers)) + struct.pack(f"<{len(numbers)}Q", *numbers)


def _rows(
    records: npt.NDArray[np.void], members: Members, names: list[bytes], extras: dict[int, bytes]
) -> tuple[list[bytes], list[bytes]]:
    """The fixed part of each header, and its name with what follows that."""
    records["flags"] = 0 if b"".join(names).isascii() else [_flags(name) for name in names]
    records["method"] = members.methods
    records["stamp"] = _STAMP
    records["crc"] = members.crcs
    records["name"] = _lengths(names)
    content, size = records.tobytes(), records.dtype.itemsize
    heads = [content[start : start + size] for start in range(0, len(content), size)]
    return heads, [name + extras[row] if row in extras else name for row, name in enumerate(names)]


def _flags(name: bytes) -> int:
    return 0 if name.isascii() else _UTF8


def _lengths(texts: list[bytes]) -> _Numbers:
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
