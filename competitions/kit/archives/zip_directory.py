"""The directory of a zip as columns of numbers, so that a million members cost little; it reads no member's bytes."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from competitions.raw import RawPath

Column = npt.NDArray[np.int64]

_END = struct.Struct("<4s4H2IH")
_RECORD = np.dtype(
    {
        "names": [
            *("signature", "flags", "method", "crc", "packed", "size"),
            *("name", "extra", "comment", "attributes", "offset"),
        ],
        "formats": ["<u4", *["<u2"] * 2, *["<u4"] * 3, *["<u2"] * 3, *["<u4"] * 2],
        "offsets": [0, 8, 10, 16, 20, 24, 28, 30, 32, 38, 42],
        "itemsize": 46,
    }
)
_SIGNATURE = np.frombuffer(b"PK\1\2", dtype=np.uint8)
_U16, _U32 = 0xFFFF, 0xFFFFFFFF


@dataclass(frozen=True)
class Members:
    """Members of a zip, one row each.

    Attributes:
        names: as in the zip's directory.
        packed: how many bytes each has in the zip.
        sizes: how many it has when inflated.
        attributes: the external ones; the upper half is a Unix mode.
        offsets: where its local header begins.
    """

    names: Sequence[str]
    flags: Column
    methods: Column
    crcs: Column
    packed: Column
    sizes: Column
    attributes: Column
    offsets: Column

    def __len__(self) -> int:
        return len(self.names)

    def at(self, positions: npt.NDArray[np.intp] | slice) -> Members:
        """These members, in this order."""
        if isinstance(positions, slice):
            names = self.names[positions]
        else:
            names = [self.names[position] for position in positions.tolist()]
        return Members(
            names=names,
            flags=self.flags[positions],
            methods=self.methods[positions],
            crcs=self.crcs[positions],
            packed=self.packed[positions],
            sizes=self.sizes[positions],
            attributes=self.attributes[positions],
            offsets=self.offsets[positions],
        )


def read(path: RawPath) -> Members:
    """The members of a zip in its own order.

    Raises:
        zipfile.BadZipFile: it is no zip, or is damaged.
    """
    with path.open("rb") as stream:
        return _read_plain(stream) or _read_any(stream)


def _read_plain(stream: IO[bytes]) -> Members | None:
    """Read the directory at one go; None where it is not of the common kind."""
    found = _directory_bytes(stream)
    if found is None:
        return None
    content, count = found
    data = np.frombuffer(content, dtype=np.uint8)
    here = data[:-3] == _SIGNATURE[0]
    for place, letter in enumerate(_SIGNATURE[1:].tolist(), start=1):
        here &= data[place : len(data) - 3 + place] == letter
    starts = np.flatnonzero(here)
    if len(starts) != count or starts[-1] + _RECORD.itemsize > len(data):
        return None
    records = data[starts[:, None] + np.arange(_RECORD.itemsize)].view(_RECORD)[:, 0]
    name_starts = starts + _RECORD.itemsize
    name_ends = name_starts + records["name"]
    ends = name_ends + records["extra"] + records["comment"]
    chained = starts[0] == 0 and ends[-1] == len(data) and bool((ends[:-1] == starts[1:]).all())
    wide = max(int(records[name].max()) for name in ("packed", "size", "offset")) == _U32
    if not chained or wide:
        return None
    text = content.decode("latin-1")
    names = [text[start:end] for start, end in zip(name_starts.tolist(), name_ends.tolist(), strict=True)]
    joined = "".join(names)
    if not joined.isascii() or "\0" in joined:
        return None
    return Members(
        names=names,
        flags=_whole(records["flags"]),
        methods=_whole(records["method"]),
        crcs=_whole(records["crc"]),
        packed=_whole(records["packed"]),
        sizes=_whole(records["size"]),
        attributes=_whole(records["attributes"]),
        offsets=_whole(records["offset"]),
    )


def _directory_bytes(stream: IO[bytes]) -> tuple[bytes, int] | None:
    size = stream.seek(0, os.SEEK_END)
    if size < _END.size:
        return None
    stream.seek(size - _END.size)
    signature, disk, first_disk, here, count, length, start, comment = _END.unpack(stream.read(_END.size))
    if signature != b"PK\5\6" or disk or first_disk or comment or here != count or not 0 < count < _U16:
        return None
    if start + length + _END.size != size:  # something stands before the zip, or it is larger than 4 GB
        return None
    stream.seek(start)
    return stream.read(length), count


def _read_any(stream: IO[bytes]) -> Members:
    with zipfile.ZipFile(stream) as archive:
        found = archive.infolist()
    return Members(
        names=[info.filename for info in found],
        flags=_column(info.flag_bits for info in found),
        methods=_column(info.compress_type for info in found),
        crcs=_column(info.CRC for info in found),
        packed=_column(info.compress_size for info in found),
        sizes=_column(info.file_size for info in found),
        attributes=_column(info.external_attr for info in found),
        offsets=_column(info.header_offset for info in found),
    )


def _whole(values: npt.NDArray[Any]) -> Column:
    return values.astype(np.int64)


def _column(values: Any) -> Column:
    return np.fromiter(values, dtype=np.int64)
