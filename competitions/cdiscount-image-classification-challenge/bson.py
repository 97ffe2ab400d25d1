"""Reader of BSON files: splits them into documents and finds integer fields without decoding the rest."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.competitions.task import Preparation

_SIZE = struct.Struct("<i")
# The sizes of values by element type, as in the BSON specification.
_FIXED = {0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16}
_FIXED |= {0x7F: 0, 0xFF: 0}
# Bytes of header that the element's size does not count: texts 4, documents and arrays 0, binaries 5.
_SIZED = {0x02: 4, 0x0D: 4, 0x0E: 4, 0x03: 0, 0x04: 0, 0x05: 5}
_NUMBERS = {0x10: _SIZE, 0x12: struct.Struct("<q"), 0x01: struct.Struct("<d")}
_SHORTEST = 5
_LONGEST = 64 << 20  # bytes; MongoDB allows a quarter of that
_STEP = 100_000


def documents(job: Preparation, path: RawPath) -> Iterator[bytes]:
    """Yield the documents of a file in file order.

    Raises:
        DataProblem: the file is empty, cut short or damaged.
    """
    total = path.stat().st_size
    if not total:
        raise RawDataProblem(f"{path} is empty")
    number, at = 1, 0
    with path.open("rb") as stream:
        while head := stream.read(_SIZE.size):
            size = int.from_bytes(head, "little", signed=True)
            if not _SHORTEST <= size <= _LONGEST:
                raise _damaged(path, number, at, "its size is wrong")
            document = head + stream.read(size - len(head))
            if len(document) < size or document[-1]:
                raise _damaged(path, number, at, "it is cut short, or its size is wrong")
            yield document
            number, at = number + 1, at + size
            if number % _STEP == 0:
                job.progress(path.name, at, total)


def whole_numbers(job: Preparation, path: RawPath, fields: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the integers in some fields, one row per document.

    Raises:
        DataProblem: the file is empty, cut short or damaged, or a document lacks a field.
    """
    found, at = array("q"), 0
    for number, document in enumerate(documents(job, path), start=1):
        try:
            elements = _numbers(document, fields)
            found.extend(elements[field][0] for field in fields)
        except KeyError as error:
            raise _damaged(path, number, at, f"it has no integer field {error}") from error
        except (ValueError, OverflowError, struct.error) as error:
            raise _damaged(path, number, at, str(error)) from error
        at += len(document)
    return np.array(found, dtype=np.int64).reshape(-1, len(fields))


def without(document: bytes, field: str) -> bytes:
    """Return a document without one integer field."""
    _, start, end = _numbers(document, [field])[field]
    return _SIZE.pack(len(document) - (end - start)) + document[_SIZE.size : start] + document[end:]


def _damaged(path: RawPath, number: int, at: int, why: str) -> RawDataProblem:
    return RawDataProblem(f"{path} is damaged", f"document {number}, at byte {at}: {why}")


def _numbers(document: bytes, fields: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Return value, start and end of the elements with these names."""
    found: dict[str, tuple[int, int, int]] = {}
    place, last = _SIZE.size, len(document) - 1
    while place < last and len(found) < len(fields):
        kind = document[place]
        name_end = document.find(b"\0", place, last)
        if name_end < 0:
            raise ValueError("a name has no end")
        name = document[place + 1 : name_end].decode("utf-8", "replace")
        end = _value_end(document, kind, name_end + 1)
        if end > last:
            raise ValueError(f"field {name!r} is cut short")
        if name in fields:
            (value,) = _NUMBERS[kind].unpack_from(document, name_end + 1)
            if value != int(value):
                raise ValueError(f"field {name!r} is not an integer")
            found[name] = int(value), place, end
        place = end
    return found


def _value_end(document: bytes, kind: int, start: int) -> int:
    if kind in _FIXED:
        return start + _FIXED[kind]
    if kind not in _SIZED:
        raise ValueError(f"an element has the unknown type {kind}")
    (size,) = _SIZE.unpack_from(document, start)
    if size < 0:
        raise ValueError("a size is below zero")
    end: int = start + _SIZED[kind] + size
    return end
