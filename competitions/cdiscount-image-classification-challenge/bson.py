"""BSON files as rows of documents: where each lies and its whole numbers, found without decoding the rest.

They are read from front to back, as often as something is asked of them.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from competitions.raw import RawDataProblem, RawPath
from competitions.task import Preparation

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
_LONGEST = 64 << 20  # bytes; MongoDB allows a quarter of that
_STEP = 100_000
_BLOCK = 1 << 20
_STRETCH = 16 << 20  # bytes read at a time


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


@dataclass(frozen=True)
class Part:
    """Documents that become a file of their own, in their order.

    Attributes:
        chosen: for each document whether it is one of them.
        without: the place among the fields asked for of the one that they are to lose.
    """

    target: Path
    chosen: Flags
    without: int | None = None


def index(job: Preparation, path: RawPath, fields: Sequence[str]) -> Index:
    """Find every document, and in each the whole numbers of some fields.

    Raises:
        DataProblem: the file is empty, cut short or damaged, or a document lacks a field.
    """
    wanted = [field.encode() for field in fields]
    edges, found = array("q", [0]), array("q")
    total = path.stat().st_size
    if not total:
        raise RawDataProblem(f"{path} is empty")
    with path.open("rb") as stream:
        try:
            for content, start, end in _documents(stream):
                elements = _numbers(content, start + _SIZE.size, end - 1, wanted)
                moved = edges[-1] - start  # from places in what is held to places in the file
                for field in wanted:
                    value, first, last = elements[field]
                    found.extend((value, first + moved, last + moved))
                edges.append(end + moved)
                if len(edges) % _STEP == 0:
                    job.progress(path.name, edges[-1], total)
        except (ValueError, OverflowError, struct.error, KeyError) as error:
            raise RawDataProblem(
                f"{path} is damaged", f"document {len(edges)}, at byte {edges[-1]}: {_message(error)}"
            ) from error
    table = np.array(found, dtype=np.int64).reshape(len(edges) - 1, len(fields), 3)
    return Index(np.array(edges, dtype=np.int64), table[..., 0], table[..., 1], table[..., 2])


def _documents(stream: IO[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Each document as a stretch of the file that holds it, and where it begins and ends there."""
    content, start = b"", 0
    while True:
        end = _end_of(content, start)
        if end is not None:
            yield content, start, end
            start = end
            continue
        more = stream.read(_STRETCH)
        if not more:
            if start < len(content):
                raise ValueError("it is cut short, or its size is wrong")
            return
        content, start = content[start:] + more, 0


def _end_of(content: bytes, start: int) -> int | None:
    """Where a document ends; None if it goes on behind what is held."""
    if start + _SIZE.size > len(content):
        return None
    (size,) = _SIZE.unpack_from(content, start)
    if not _SHORTEST <= size <= _LONGEST:
        raise ValueError("its size is wrong")
    end: int = start + size
    if end > len(content):
        return None
    if content[end - 1] != 0:
        raise ValueError("it is cut short, or its size is wrong")
    return end


def divide(job: Preparation, path: RawPath, found: Index, parts: Sequence[Part]) -> None:
    """Make each part of the file's documents, reading it once from front to back."""
    count = len(found.edges) - 1
    with ExitStack() as stack:
        source = stack.enter_context(path.open("rb"))
        targets = []
        for part in parts:
            part.target.parent.mkdir(parents=True, exist_ok=True)
            targets.append(stack.enter_context(part.target.open("xb", _BLOCK)))
        first = 0
        while first < count:
            start = int(found.edges[first])
            last = max(first + 1, int(np.searchsorted(found.edges, start + _STRETCH, side="right")) - 1)
            content = memoryview(source.read(int(found.edges[last]) - start))
            for part, target in zip(parts, targets, strict=True):
                target.writelines(_pieces(content, found, slice(first, last), part))
            first = last
            job.progress(path.name, int(found.edges[first]), int(found.edges[-1]))


def _pieces(content: memoryview, found: Index, here: slice, part: Part) -> Iterator[bytes | memoryview]:
    """What a stretch of documents adds to a part."""
    base = int(found.edges[here.start])
    edges = found.edges[here.start : here.stop + 1] - base
    chosen = part.chosen[here]
    if part.without is None:
        turns = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
        for first, last in edges[turns].reshape(-1, 2).tolist():  # runs of neighbours go in one piece
            yield content[first:last]
        return
    field_starts, field_ends = (places[here, part.without] - base for places in (found.starts, found.ends))
    places = np.column_stack([edges[:-1], field_starts, field_ends, edges[1:]])
    for first, start, end, last in places[chosen].tolist():
        yield _SIZE.pack(last - first - (end - start))
        yield content[first + _SIZE.size : start]
        yield content[end:last]


def _numbers(
    content: bytes, place: int, end: int, wanted: Sequence[bytes]
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


def _value_end(content: bytes, kind: int, start: int) -> int:
    if kind in _FIXED:
        return start + _FIXED[kind]
    if kind not in _SIZED:
        raise ValueError(f"an element has the unknown type {kind}")
    (size,) = _SIZE.unpack_from(content, start)
    if size < 0:
        raise ValueError("a size is below zero")
    end: int = start + _SIZED[kind] + size
    return end


def _message(error: Exception) -> str:
    return f"it has no whole number {error}" if isinstance(error, KeyError) else str(error)
