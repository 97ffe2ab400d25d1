"""PNG pictures as arrays of grey levels; sizes alone are read by `arrays`, other formats not at all."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from competitions.raw import RawDataProblem

Levels = npt.NDArray[np.uint8]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK = struct.Struct(">I4s")
_HEADER = struct.Struct(">IIBBBBB")
_GREY, _COLOUR, _PALETTE, _GREY_ALPHA, _COLOUR_ALPHA = 0, 2, 3, 4, 6
_SAMPLES = {_GREY: 1, _COLOUR: 3, _PALETTE: 1, _GREY_ALPHA: 2, _COLOUR_ALPHA: 4}
# ITU-R 601-2 luma in sixteenths of a bit, as Pillow's mode L has it
_LUMA = np.array([19595, 38470, 7471], dtype=np.int64)
_HALF = 0x8000


@dataclass(frozen=True)
class _Header:
    width: int
    height: int
    depth: int
    kind: int

    @property
    def samples(self) -> int:
        return _SAMPLES[self.kind]

    @property
    def row_bytes(self) -> int:
        return -(-self.width * self.samples * self.depth // 8)

    @property
    def pixel_bytes(self) -> int:
        return max(1, self.samples * self.depth // 8)


def grey_levels(content: bytes, name: str) -> Levels:
    """A picture in 256 levels of grey, one row per row; colours are weighted, transparency is ignored.

    Raises:
        DataProblem: the file of this name is damaged, or of a kind that is not read: interlaced, or 16 bits deep.
    """
    try:
        header, palette, packed = _chunks(content)
        rows = _unfiltered(header, zlib.decompress(packed))
    except (ValueError, KeyError, struct.error, zlib.error) as error:
        raise RawDataProblem(f"{name} cannot be read as a PNG picture", str(error)) from error
    samples = _samples(header, rows)
    if header.kind == _PALETTE:
        return _grey(palette)[samples[..., 0]]
    if header.kind in (_COLOUR, _COLOUR_ALPHA):
        return _grey(samples[..., :3])
    return samples[..., 0]


def _chunks(content: bytes) -> tuple[_Header, Levels, bytes]:
    if not content.startswith(_SIGNATURE):
        raise ValueError("it is no PNG")
    chunks = list(_walk(content))
    width, height, depth, kind, *rest = _HEADER.unpack(dict(chunks)[b"IHDR"])
    if rest != [0, 0, 0] or depth > 8 or (kind != _GREY and kind != _PALETTE and depth != 8):
        raise ValueError("it is interlaced, or has an unusual depth")
    palette = np.zeros((256, 3), dtype=np.uint8)
    colours = np.frombuffer(dict(chunks).get(b"PLTE", b""), dtype=np.uint8).reshape(-1, 3)
    palette[: len(colours)] = colours
    return (
        _Header(width, height, depth, kind),
        palette,
        b"".join(data for name, data in chunks if name == b"IDAT"),
    )


def _walk(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    name = b""
    while name != b"IEND":
        size, name = _CHUNK.unpack_from(content, place)
        data = content[place + _CHUNK.size : place + _CHUNK.size + size]
        (stated,) = struct.unpack_from(">I", content, place + _CHUNK.size + size)
        if zlib.crc32(name + data) != stated:
            raise ValueError(f"its chunk {name!r} is damaged")
        yield name, data
        place += _CHUNK.size + size + 4


def _unfiltered(header: _Header, content: bytes) -> Levels:
    """Undo the filters of all rows at once, diagonal by diagonal.

    A byte depends on those to the left, above, and above left, so all bytes on a line from bottom
    left to top right can be told together, whatever the filters of their rows.
    """
    height, wide, step = header.height, header.row_bytes, header.pixel_bytes
    table = np.frombuffer(content, dtype=np.uint8)
    if len(table) != height * (wide + 1):
        raise ValueError("its rows are incomplete")
    table = table.reshape(height, wide + 1)
    kinds, filtered = table[:, 0], table[:, 1:]
    if int(kinds.max(initial=0)) > 4:
        raise ValueError("it has an unknown filter")
    made = np.zeros((height + 1, wide + step), dtype=np.int16)  # with a margin of zeros above and left
    groups = -(-wide // step)
    for diagonal in range(height + groups - 1):
        rows = np.arange(max(0, diagonal - groups + 1), min(height, diagonal + 1))
        for offset in range(step):
            columns = (diagonal - rows) * step + offset
            left, above, corner = made[rows + 1, columns], made[rows, columns + step], made[rows, columns]
            made[rows + 1, columns + step] = (
                filtered[rows, columns] + _predicted(kinds[rows], left, above, corner)
            ) & 0xFF
    return made[1:, step:].astype(np.uint8)


def _predicted(
    kinds: Levels, left: npt.NDArray[np.int16], above: npt.NDArray[np.int16], corner: npt.NDArray[np.int16]
) -> npt.NDArray[np.int16]:
    estimate = left + above - corner
    by_left, by_above, by_corner = (np.abs(estimate - known) for known in (left, above, corner))
    nearest = np.where(
        (by_left <= by_above) & (by_left <= by_corner), left, np.where(by_above <= by_corner, above, corner)
    )
    return np.choose(kinds, [np.zeros_like(left), left, above, (left + above) // 2, nearest])


def _samples(header: _Header, rows: Levels) -> Levels:
    """One level per sample; levels of grey of less than eight bits are spread over the whole range."""
    if header.depth < 8:
        bits = np.unpackbits(rows, axis=1).reshape(header.height, -1, header.depth)
        levels = np.packbits(bits, axis=2)[..., 0] >> (8 - header.depth)
        scale = 255 // ((1 << header.depth) - 1) if header.kind == _GREY else 1
        rows = (levels[:, : header.width] * scale).astype(np.uint8)
    return rows.reshape(header.height, header.width, header.samples)


def _grey(colours: Levels) -> Levels:
    return ((colours.astype(np.int64) @ _LUMA + _HALF) >> 16).astype(np.uint8)
