"""Writing a zip from members of other zips without touching their compressed bytes; it compresses nothing itself."""

from __future__ import annotations

import os
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from foundation.problems import DataProblem

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")

_U16 = 0xFFFF
_U32 = 0xFFFFFFFF
_UTF8 = 0x800
_ENCRYPTED = 0x1
_UNIX = 3
_MODE = 0o100644 << 16
_BLOCK = 1 << 20


@dataclass(frozen=True)
class _Entry:
    name: bytes
    flags: int
    method: int
    stamp: tuple[int, int]
    crc: int
    packed: int
    size: int
    offset: int


class ZipWriter:
    """A zip being written; its directory is written when the block is left without an error."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("xb", _BLOCK)
        self._entries: list[_Entry] = []

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

    def add_compressed(self, source: IO[bytes], info: zipfile.ZipInfo, name: str) -> None:
        """Append a member of the zip opened as `source` under a new name, its packed bytes unchanged."""
        if info.flag_bits & _ENCRYPTED:
            raise DataProblem(f"Archive member {info.filename!r} was not taken", "it is encrypted")
        encoded = name.encode()
        entry = _Entry(
            name=encoded,
            flags=0 if encoded.isascii() else _UTF8,
            method=info.compress_type,
            stamp=_dos_stamp(info.date_time),
            crc=info.CRC,
            packed=info.compress_size,
            size=info.file_size,
            offset=self._stream.tell(),
        )
        self._stream.write(_local_header(entry))
        _seek_to_data(source, info)
        left = info.compress_size
        while left:
            block = source.read(min(left, _BLOCK))
            if not block:
                raise DataProblem(f"Archive member {info.filename!r} is cut short", "the zip is incomplete")
            self._stream.write(block)
            left -= len(block)
        self._entries.append(entry)

    def _write_directory(self) -> None:
        start = self._stream.tell()
        for entry in self._entries:
            self._stream.write(_central_header(entry))
        end = self._stream.tell()
        count, size = len(self._entries), end - start
        if count >= _U16 or size >= _U32 or start >= _U32:
            self._stream.write(
                _END64.pack(b"PK\6\6", _END64.size - 12, 45, 45, 0, 0, count, count, size, start)
            )
            self._stream.write(_LOCATOR64.pack(b"PK\6\7", 0, end, 1))
        count, size, start = min(count, _U16), min(size, _U32), min(start, _U32)
        self._stream.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0))


def _seek_to_data(source: IO[bytes], info: zipfile.ZipInfo) -> None:
    source.seek(info.header_offset)
    header = source.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
        raise DataProblem(f"Archive member {info.filename!r} is not where the zip says", "the zip is damaged")
    name_length, extra_length = struct.unpack("<2H", header[-4:])
    source.seek(name_length + extra_length, os.SEEK_CUR)


def _local_header(entry: _Entry) -> bytes:
    big = entry.packed >= _U32 or entry.size >= _U32
    extra = struct.pack("<2H2Q", 1, 16, entry.size, entry.packed) if big else b""
    packed, size = (_U32, _U32) if big else (entry.packed, entry.size)
    return (
        _LOCAL.pack(
            b"PK\3\4",
            45 if big else 20,
            entry.flags,
            entry.method,
            *entry.stamp,
            entry.crc,
            packed,
            size,
            len(entry.name),
            len(extra),
        )
        + entry.name
        + extra
    )


def _central_header(entry: _Entry) -> bytes:
    wide = [value for value in (entry.size, entry.packed, entry.offset) if value >= _U32]
    extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    version = 45 if wide else 20
    return (
        _CENTRAL.pack(
            b"PK\1\2",
            version | _UNIX << 8,
            version,
            entry.flags,
            entry.method,
            *entry.stamp,
            entry.crc,
            min(entry.packed, _U32),
            min(entry.size, _U32),
            len(entry.name),
            len(extra),
            0,
            0,
            0,
            _MODE,
            min(entry.offset, _U32),
        )
        + entry.name
        + extra
    )


def _dos_stamp(moment: tuple[int, int, int, int, int, int]) -> tuple[int, int]:
    year, month, day, hour, minute, second = moment
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
