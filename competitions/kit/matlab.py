"""MATLAB files of level 5: fields of structs emptied, all else kept byte for byte; values are not decoded."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = 128
_BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
_INT32, _DOUBLE, _UINT32, _MATRIX, _COMPRESSED = 5, 9, 6, 14, 15
_INT8 = 1
_STRUCT_CLASS, _DOUBLE_CLASS = 2, 6
_TAG = 8


@dataclass(frozen=True)
class _Element:
    kind: int
    content: bytes
    whole: bytes


def is_level_5(content: bytes) -> bool:
    """Whether a file is of the format that this module knows."""
    return len(content) >= _HEADER and content[126:128] in _BYTE_ORDERS and content[:6] == b"MATLAB"


def emptied(content: bytes, field: str) -> bytes:
    """The file with the named field of its struct variables made an empty matrix in each element.

    Fields of structs inside of structs are not looked at.

    Raises:
        ValueError: the file is damaged, or of another format.
    """
    if not is_level_5(content):
        raise ValueError("it is no MATLAB file of level 5")
    order = _BYTE_ORDERS[content[126:128]]
    try:
        variables = [_emptied_variable(item, field, order) for item in _elements(content[_HEADER:], order)]
    except (struct.error, zlib.error, StopIteration) as error:
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


def _emptied_variable(variable: _Element, field: str, order: str) -> bytes:
    if variable.kind == _COMPRESSED:
        inner = next(_elements(zlib.decompress(variable.content), order))
        packed = zlib.compress(_emptied_variable(inner, field, order), 1)
        return struct.pack(f"{order}II", _COMPRESSED, len(packed)) + packed
    if variable.kind != _MATRIX:
        return variable.whole
    parts = list(_elements(variable.content, order))
    if len(parts) < 5 or _unsigned(parts[0], order) & 0xFF != _STRUCT_CLASS:
        return variable.whole
    width = _unsigned(parts[3], order)
    names = [
        parts[4].content[at : at + width].split(b"\0")[0] for at in range(0, len(parts[4].content), width)
    ]
    wanted = field.encode()
    fields = [
        _empty_matrix(order) if names[number % len(names)] == wanted else part.whole
        for number, part in enumerate(parts[5:])
    ]
    return _element(order, _MATRIX, b"".join([*(part.whole for part in parts[:5]), *fields]))


def _unsigned(part: _Element, order: str) -> int:
    return int(struct.unpack_from(f"{order}I", part.content)[0])


def _element(order: str, kind: int, content: bytes) -> bytes:
    return struct.pack(f"{order}II", kind, len(content)) + content + bytes(-len(content) % 8)


def _empty_matrix(order: str) -> bytes:
    return _element(
        order,
        _MATRIX,
        _element(order, _UINT32, struct.pack(f"{order}II", _DOUBLE_CLASS, 0))
        + _element(order, _INT32, bytes(8))
        + _element(order, _INT8, b"")
        + _element(order, _DOUBLE, b""),
    )
