"""Members of a zip copied to a new one with their compressed bytes as they are, which `zipfile` cannot do."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from competitions.kit.archives.zip_directory import Members
from competitions.raw import RawPath
from competitions.task import Progress
from foundation.problems import DataProblem

# signature, version, flags, method, date and time, checksum, sizes, lengths of name and extra field
_LOCAL = struct.Struct("<4s3H4I2H")
# signature, versions, flags, method, as above, lengths of comment, disk, inner and outer attributes, offset
_CENTRAL = struct.Struct("<4s4H4I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_NAMES = struct.Struct("<26x2H")

_U16 = 0xFFFF
_U32 = 0xFFFFFFFF
_LARGE = _U32  # numbers from here on stand in a field of 64 bits, and these bits in their place
_UTF8 = 0x800
_ENCRYPTED = 0x1
_UNIX = 3 << 8
_MODE = 0o100644 << 16
_TIME = 1 << 21 | 1 << 16  # the first day of 1980, where the time of DOS begins
_PLAIN, _WIDE = 20, 45  # versions of the format: deflate, sizes of 64 bits
_BLOCK = 4 << 20
_STEP = 1000


def copy(source: RawPath, members: Members, names: Sequence[str], target: Path, tell: Progress) -> None:
    """Make a zip of members of another one under new names.

    They are put in the order of their new names and all get the same time: where a member lay in the
    source, and since when, may show its class.

    Args:
        source: the zip that the members are of.
        members: what to copy, by their place in the source, from front to back.
        names: the new name of each.
        target: the zip to make.
        tell: the progress hook.

    Raises:
        DataProblem: a member is encrypted, cut short or not where the source says.
    """
    encrypted = members.flags & _ENCRYPTED != 0
    if encrypted.any():
        name = members.names[int(encrypted.argmax())]
        raise DataProblem(f"Archive member {name!r} was not taken", "it is encrypted")
    encoded = [name.encode() for name in names]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    methods, crcs = members.methods.tolist(), members.crcs.tolist()
    packed, sizes = members.packed.tolist(), members.sizes.tolist()
    common = [
        (0 if name.isascii() else _UTF8, method, _TIME, crc)
        for name, method, crc in zip(encoded, methods, crcs, strict=True)
    ]
    heads = [_local_header(*each) for each in zip(common, packed, sizes, encoded, strict=True)]
    offsets, end = [0] * len(order), 0
    for row in order:
        offsets[row] = end
        end += len(heads[row]) + packed[row]
    with source.open("rb") as taken, target.open("xb", _BLOCK) as given:
        for row, start in enumerate(members.offsets.tolist()):
            if given.tell() != offsets[row]:
                given.seek(offsets[row])
            given.write(heads[row])
            _copy_packed(taken, start, packed[row], given, members.names[row])
            if (row + 1) % _STEP == 0 or row + 1 == len(order):
                tell(target.name, row + 1, len(order))
        given.seek(end)
        for row in order:
            given.write(_central_header(common[row], packed[row], sizes[row], offsets[row], encoded[row]))
        given.write(_end_records(len(order), end, given.tell()))


def _copy_packed(taken: IO[bytes], start: int, size: int, given: IO[bytes], name: str) -> None:
    taken.seek(start)
    head = taken.read(_LOCAL.size)
    if len(head) < _LOCAL.size:
        raise _cut_short(name)
    if not head.startswith(b"PK\3\4"):
        raise DataProblem(f"Archive member {name!r} is not where the zip says", "the zip is damaged")
    taken.read(sum(_NAMES.unpack(head)))
    while size > 0:
        block = taken.read(min(size, _BLOCK))
        if not block:
            raise _cut_short(name)
        given.write(block)
        size -= len(block)


def _cut_short(name: str) -> DataProblem:
    return DataProblem(f"Archive member {name!r} is cut short", "the zip is incomplete")


_Common = tuple[int, int, int, int]


def _local_header(common: _Common, packed: int, size: int, name: bytes) -> bytes:
    extra = _extra(size, packed) if max(size, packed) >= _LARGE else b""
    fields = (_U32, _U32) if extra else (packed, size)
    version = _WIDE if extra else _PLAIN
    return _LOCAL.pack(b"PK\3\4", version, *common, *fields, len(name), len(extra)) + name + extra


def _central_header(common: _Common, packed: int, size: int, offset: int, name: bytes) -> bytes:
    wide = [number for number in (size, packed, offset) if number >= _LARGE]
    extra = _extra(*wide) if wide else b""
    version = _WIDE if wide else _PLAIN
    sizes = (_narrow(packed), _narrow(size), len(name), len(extra))
    fields = (version | _UNIX, version, *common, *sizes, 0, 0, 0, _MODE, _narrow(offset))
    return _CENTRAL.pack(b"PK\1\2", *fields) + name + extra


def _narrow(number: int) -> int:
    return _U32 if number >= _LARGE else number


def _extra(*numbers: int) -> bytes:
    """The extra field of numbers that need 64 bits."""
    return struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


def _end_records(count: int, start: int, end: int) -> bytes:
    size, tail = end - start, b""
    if count >= _U16 or size >= _LARGE or start >= _LARGE:
        tail = _END64.pack(b"PK\6\6", _END64.size - 12, _WIDE, _WIDE, 0, 0, count, count, size, start)
        tail += _LOCATOR64.pack(b"PK\6\7", 0, end, 1)
    count = min(count, _U16)
    return tail + _END.pack(b"PK\5\6", 0, 0, count, count, _narrow(size), _narrow(start), 0)
