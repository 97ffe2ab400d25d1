"""Empty variables and fields of one name in MATLAB level 5 files, keeping all else byte for byte; no decoding."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = 128
_BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
_INT32, _DOUBLE, _UINT32, _MATRIX, _COMPRESSED = 5, 9, 6, 14, 15
_INT8 = 1
_CELL_CLASS, _STRUCT_CLASS, _OBJECT_CLASS, _DOUBLE_CLASS = 1, 2, 3, 6
# classes that contain further matrices, and how many elements describe their fields: the lengths of names, the
# names, and before them the class of an object
_CONTAINERS = {_CELL_CLASS: 0, _STRUCT_CLASS: 2, _OBJECT_CLASS: 3}
_TAG = 8


@dataclass(frozen=True)
class _Element:
    kind: int
    content: bytes
    whole: bytes


def is_level_5(content: bytes) -> bool:
    """Return whether a file has the format that this module supports."""
    return len(content) >= _HEADER and content[126:128] in _BYTE_ORDERS and content[:6] == b"MATLAB"


def emptied(content: bytes, field: str) -> bytes:
    """Return the file with everything of one name, in any case, replaced by an empty matrix.

    Variables are replaced, and fields of structs, also of structs inside structs and cells.

    Raises:
        ValueError: the file is damaged, or of another format.
    """
    if not is_level_5(content):
        raise ValueError("it is not a MATLAB file of level 5")
    emptying = _Emptying(_BYTE_ORDERS[content[126:128]], field.lower().encode())
    try:
        variables = [emptying.of_matrix(item) for item in _elements(content[_HEADER:], emptying.order)]
    except (struct.error, zlib.error, StopIteration, IndexError) as error:
        raise ValueError(f"its variables are damaged: {error}") from error
    return content[:_HEADER] + b"".join(variables)


def _elements(data: bytes, order: str) -> Iterator[_Element]:
    place = 0
    while place < len(data):
        kind, size = struct.unpack_from(f"{order}II", data, place)
        start, end = place + _TAG, place + _TAG + size
        if kind >> 16:  # a short element holds its content inside of the tag
            kind, size = kind & 0xFFFF, kind >> 16
            start, end = place + 4, place + 4 + size
            after = place + _TAG
        else:
            after = end if kind == _COMPRESSED else end + -size % 8
        if end > len(data):
            raise struct.error("an element is longer than what holds it")
        yield _Element(kind, data[start:end], data[place:after])
        place = after


@dataclass(frozen=True)
class _Emptying:
    order: str
    name: bytes

    def of_matrix(self, matrix: _Element) -> bytes:
        """Return a variable, or the content of a field or cell, with everything of the name emptied."""
        order = self.order
        if matrix.kind == _COMPRESSED:
            inner = next(_elements(zlib.decompress(matrix.content), order))
            packed = zlib.compress(self.of_matrix(inner), 1)
            return struct.pack(f"{order}II", _COMPRESSED, len(packed)) + packed
        if matrix.kind != _MATRIX or not matrix.content:
            return matrix.whole
        parts = _elements(matrix.content, order)
        head = [next(parts), next(parts), next(parts)]  # class, dimensions, name
        if head[2].content.lower() == self.name:
            return _empty_matrix(order, head[2])
        kind = _unsigned(head[0], order) & 0xFF
        if kind not in _CONTAINERS:
            return matrix.whole
        head += [next(parts) for _ in range(_CONTAINERS[kind])]
        names = [] if kind == _CELL_CLASS else _field_names(head[-2], head[-1], order)
        held = [
            _empty_matrix(order)
            if names and names[number % len(names)] == self.name
            else self.of_matrix(part)
            for number, part in enumerate(parts)
        ]
        return _element(order, _MATRIX, b"".join([*(part.whole for part in head), *held]))


def _field_names(width: _Element, names: _Element, order: str) -> list[bytes]:
    size = _unsigned(width, order)
    return [
        names.content[at : at + size].split(b"\0")[0].lower() for at in range(0, len(names.content), size)
    ]


def _unsigned(part: _Element, order: str) -> int:
    return int(struct.unpack_from(f"{order}I", part.content)[0])


def _element(order: str, kind: int, content: bytes) -> bytes:
    return struct.pack(f"{order}II", kind, len(content)) + content + bytes(-len(content) % 8)


def _empty_matrix(order: str, name: _Element | None = None) -> bytes:
    return _element(
        order,
        _MATRIX,
        _element(order, _UINT32, struct.pack(f"{order}II", _DOUBLE_CLASS, 0))
        + _element(order, _INT32, bytes(8))
        + (name.whole if name else _element(order, _INT8, b""))
        + _element(order, _DOUBLE, b""),
    )
