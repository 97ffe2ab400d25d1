"""Read, check and filter TFRecord files of `tf.train.Example` without TensorFlow; images are not decoded."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.foundation.problems import DataProblem

_LENGTH = struct.Struct("<Q")
_CHECK = struct.Struct("<I")
_HEAD = _LENGTH.size + _CHECK.size
_U32 = 0xFFFFFFFF

# field numbers and wire types of Example { features = 1 }, Features { map<string, Feature> feature = 1 },
# Feature { bytes_list = 1 } and BytesList { repeated bytes value = 1 }: all of them are field 1, with a length
_FIRST = 1
_SECOND = 2
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


def records(path: RawPath) -> Iterator[bytes]:
    """Yield the records of a file.

    Raises:
        DataProblem: the file is cut short, or a length or a record does not agree with its checksum.
    """
    left = path.stat().st_size
    with path.open("rb") as stream:
        while left:
            head = stream.read(_HEAD)
            if len(head) < _HEAD or _check_of(head[: _LENGTH.size]) != head[_LENGTH.size :]:
                raise _damaged(path, stream.tell(), "the length of a record is cut off or wrong")
            (length,) = _LENGTH.unpack_from(head)
            left -= _HEAD + length + _CHECK.size
            if left < 0:
                raise _damaged(path, stream.tell(), "a record is cut off")
            payload = stream.read(length)
            if _check_of(payload) != stream.read(_CHECK.size):
                raise _damaged(path, stream.tell(), "a record does not agree with its checksum")
            yield payload


def write(path: Path, payloads: Iterable[bytes]) -> None:
    """Write records to a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as stream:
        for payload in payloads:
            length = _LENGTH.pack(len(payload))
            stream.write(length + _check_of(length) + payload + _check_of(payload))


def texts(path: RawPath, feature: str) -> list[str]:
    """Return the first value of a bytes feature of each record, as text.

    Raises:
        DataProblem: the file is damaged, or a record has no such feature.
    """
    found = []
    for number, payload in enumerate(records(path), start=1):
        try:
            found.append(_first_bytes(payload, feature).decode())
        except (ValueError, KeyError) as error:
            raise DataProblem(
                f"{path}: record {number} cannot be read", f"it has no text feature {feature!r}"
            ) from error
    return found


def write_filtered(source: RawPath, target: Path, features: Collection[str]) -> None:
    """Copy a file's records with only the named features.

    Raises:
        DataProblem: the file is damaged, or a record is not an Example.
    """
    write(target, (_filtered(source, payload, features) for payload in records(source)))


def _filtered(source: RawPath, payload: bytes, features: Collection[str]) -> bytes:
    try:
        kept = b"".join(_delimited(entry) for name, entry in _entries(payload) if name in features)
    except ValueError as error:
        raise DataProblem(f"{source}: a record cannot be read", str(error)) from error
    return _delimited(kept)


def _first_bytes(payload: bytes, feature: str) -> bytes:
    for name, entry in _entries(payload):
        if name == feature:
            for values in _parts(_only(entry, _SECOND), _FIRST):
                return _only(values, _FIRST)
    raise KeyError(feature)


def _entries(payload: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the entries of an Example's map of features: the name, and the encoded entry."""
    for features in _parts(payload, _FIRST):
        for entry in _parts(features, _FIRST):
            yield _only(entry, _FIRST).decode(), entry


def _only(message: bytes, field: int) -> bytes:
    part = next(_parts(message, field), None)
    if part is None:
        raise ValueError(f"field {field} is missing")
    return part


def _parts(message: bytes, field: int) -> Iterator[bytes]:
    """Yield the values of a length-delimited field of a message, skipping other fields."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        elif kind == _DELIMITED:
            size, at = _varint(message, at)
            if tag >> 3 == field and at + size <= len(message):
                yield message[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {kind} is not known")
    if at > len(message):
        raise ValueError("a field is cut off")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ValueError("a number is cut off")


def _delimited(content: bytes) -> bytes:
    """Return a length-delimited field 1 with this content."""
    head = bytearray([_FIRST << 3 | _DELIMITED])
    size = len(content)
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + content


def _check_of(content: bytes) -> bytes:
    # TFRecord rotates the checksum and adds a constant, so that checksums over data with checksums stay reliable
    import google_crc32c

    crc = google_crc32c.value(content)
    return _CHECK.pack((crc >> 15 | crc << 17 & _U32) + 0xA282EAD8 & _U32)


def _damaged(path: RawPath, at: int, why: str) -> DataProblem:
    return RawDataProblem(f"{path} is damaged before byte {at}", why)
