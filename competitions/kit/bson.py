"""BSON files as rows of documents: where each lies and its whole numbers, found without decoding the rest."""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from competitions.kit.raw_files import on_disk
from competitions.raw import RawPath
from competitions.task import Preparation
from foundation.problems import DataProblem

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_SIZE = struct.Struct("<i")
_INT64 = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")
# The sizes of values by element type, as in the BSON specification.
_FIXED = {0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16}
_FIXED |= {0x7F: 0, 0xFF: 0}
# What stands before the bytes that a size counts: texts, documents and arrays (which count their size), binaries.
_SIZED = {0x02: 4, 0x0D: 4, 0x0E: 4, 0x03: 0, 0x04: 0, 0x05: 5}
_NUMBERS = {0x10: _SIZE, 0x12: _INT64, 0x01: _DOUBLE}
_SHORTEST = 5
_STEP = 100_000
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Index:
    """Where the documents of a file lie, and some of their fields.

    Attributes:
        edges: where each document starts, and where the last one ends.
        values: per document the value of each field asked for.
        starts: per document where the element of each of these fields starts.
        ends: per document where it ends.
    """

    edges: Numbers
    values: Numbers
    starts: Numbers
    ends: Numbers


@contextmanager
def mapped(path: RawPath) -> Iterator[mmap.mmap]:
    """A file as if it lay in memory.

    Raises:
        DataProblem: it is empty.
    """
    with on_disk(path) as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise DataProblem(
                f"{path} is empty", next_step="Download the competition's data again."
            ) from error
        with content:
            yield content


def index(job: Preparation, path: RawPath, content: mmap.mmap, fields: Sequence[str]) -> Index:
    """Find every document, and in each the whole numbers of some fields.

    Raises:
        DataProblem: the file is cut short or damaged, or a document lacks a field.
    """
    wanted = [field.encode() for field in fields]
    edges, found = array("q", [0]), array("q")
    start, total = 0, len(content)
    while start < total:
        try:
            end = _end_of(content, start)
            elements = _numbers(content, start + _SIZE.size, end - 1, wanted)
            for field in wanted:
                found.extend(elements[field])
        except (ValueError, OverflowError, struct.error, KeyError) as error:
            raise DataProblem(
                f"{path} is damaged",
                f"document {len(edges)}, at byte {start}: {_told(error)}",
                "Download the competition's data again.",
            ) from error
        edges.append(end)
        start = end
        if len(edges) % _STEP == 0:
            job.progress(path.name, end, total)
    table = np.array(found, dtype=np.int64).reshape(len(edges) - 1, len(fields), 3)
    return Index(np.array(edges, dtype=np.int64), table[..., 0], table[..., 1], table[..., 2])


def write_documents(content: mmap.mmap, edges: Numbers, chosen: Flags, target: Path) -> None:
    """Make a file of the chosen documents, which stand in their order and are not changed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    turns = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    with memoryview(content) as view, target.open("xb") as stream:
        for first, last in edges[turns].reshape(-1, 2).tolist():  # runs of neighbours go in one piece
            stream.write(view[first:last])


def write_without(content: mmap.mmap, found: Index, field: int, chosen: Flags, target: Path) -> None:
    """Make a file of the chosen documents without one of the fields that were asked for."""
    target.parent.mkdir(parents=True, exist_ok=True)
    places = [found.edges[:-1], found.starts[:, field], found.ends[:, field], found.edges[1:]]
    with memoryview(content) as view, target.open("xb", _BLOCK) as stream:
        for first, start, end, last in np.column_stack(places)[chosen].tolist():
            stream.write(_SIZE.pack(last - first - (end - start)))
            stream.write(view[first + _SIZE.size : start])
            stream.write(view[end:last])


def _end_of(content: mmap.mmap, start: int) -> int:
    (size,) = _SIZE.unpack_from(content, start)
    end: int = start + size
    if size < _SHORTEST or end > len(content) or content[end - 1] != 0:
        raise ValueError("it is cut short, or its size is wrong")
    return end


def _numbers(
    content: mmap.mmap, place: int, end: int, wanted: Sequence[bytes]
) -> dict[bytes, tuple[int, int, int]]:
    """Value, start and end of the elements with these names, walked from the document's first one."""
    found: dict[bytes, tuple[int, int, int]] = {}
    while place < end and len(found) < len(wanted):
        kind = content[place]
        name_end = content.find(b"\0", place, end)
        if name_end < 0:
            raise ValueError("a name has no end")
        name = content[place + 1 : name_end]
        value_end = _value_end(content, kind, name_end + 1)
        if value_end > end:
            raise ValueError(f"field {name!r} is cut short")
        if name in wanted:
            (value,) = _NUMBERS[kind].unpack_from(content, name_end + 1)
            if value != int(value):
                raise ValueError(f"field {name!r} is no whole number")
            found[name] = int(value), place, value_end
        place = value_end
    return found


def _value_end(content: mmap.mmap, kind: int, start: int) -> int:
    if kind in _FIXED:
        return start + _FIXED[kind]
    if kind not in _SIZED:
        raise ValueError(f"an element has the unknown type {kind}")
    (size,) = _SIZE.unpack_from(content, start)
    if size < 0:
        raise ValueError("a size is below zero")
    end: int = start + _SIZED[kind] + size
    return end


def _told(error: Exception) -> str:
    return f"it has no whole number {error}" if isinstance(error, KeyError) else str(error)
