"""PNG pictures of every usual kind become grey levels, whatever their filters, and damaged ones are named."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.registry import get, load_task
from mlebench_console.foundation.problems import DataProblem

task = load_task(get("denoising-dirty-documents"))

KINDS = {
    "grey": (0, 1),
    "colour": (2, 3),
    "palette": (3, 1),
    "grey and alpha": (4, 2),
    "colour and alpha": (6, 4),
}


def filtered(rows: np.ndarray, kinds: list[int], step: int) -> bytes:
    """The bytes of rows after the given filters, row by row and byte by byte as the format describes them."""
    made = bytearray()
    above = [0] * rows.shape[1]
    for kind, row in zip(kinds, rows.tolist(), strict=True):
        made.append(kind)
        for place, value in enumerate(row):
            left = row[place - step] if place >= step else 0
            corner = above[place - step] if place >= step else 0
            up = above[place]
            guess = left + up - corner
            nearest = min(
                (abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner)
            )
            made.append((value - [0, left, up, (left + up) // 2, nearest[2]][kind]) % 256)
        above = row
    return bytes(made)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def picture(width: int, height: int, depth: int, kind: int, content: bytes, *more: bytes) -> bytes:
    packed = zlib.compress(content)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
    parts = chunk(b"IDAT", packed[:7]) + chunk(b"IDAT", packed[7:])
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(more) + parts + chunk(b"IEND", b"")


@given(st.data())
def test_all_filters_are_undone(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kind, samples = data.draw(st.sampled_from(list(KINDS.values())))
    height, width = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    rows = np.frombuffer(
        data.draw(st.binary(min_size=height * width * samples, max_size=height * width * samples)), np.uint8
    ).reshape(height, width * samples)
    kinds = data.draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    palette = chunk(b"PLTE", bytes(level for level in range(256) for _ in range(3)))
    content = picture(width, height, 8, kind, filtered(rows, kinds, samples), palette)
    cells = rows.reshape(height, width, samples)
    if kind in (2, 6):
        weighted = cells[..., :3].astype(int) @ [19595, 38470, 7471]
        expected = (weighted + 32768) // 65536
    else:
        expected = cells[..., 0]
    assert task.grey_levels(content, "x.png").tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("depth", "row", "expected"),
    [(1, 0b10110000, [255, 0, 255, 255]), (2, 0b00011011, [0, 85, 170, 255]), (4, 0xF0, [255, 0])],
)
def test_fewer_bits_are_spread_over_the_whole_range(
    depth: int, row: int, expected: list[int], tmp_path: Path
) -> None:
    content = picture(len(expected), 1, depth, 0, bytes([0, row]))
    assert task.grey_levels(content, "x.png").tolist() == [expected]


def test_few_colours_are_looked_up(tmp_path: Path) -> None:
    palette = chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0, 0, 0, 255]))
    content = picture(3, 1, 2, 3, bytes([0, 0b00011000]), palette)
    assert task.grey_levels(content, "x.png").tolist() == [[76, 150, 29]]


WHOLE = picture(2, 2, 8, 0, bytes([0, 1, 2, 0, 3, 4]))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a",
        WHOLE[:-20],
        WHOLE[:60] + b"x" + WHOLE[61:],
        picture(2, 2, 8, 0, bytes([0, 1, 2, 0, 3])),
        picture(2, 2, 8, 0, bytes([9, 1, 2, 0, 3, 4])),
        picture(2, 2, 16, 0, bytes(10)),
        picture(2, 2, 8, 5, bytes(6)),
    ],
)
def test_a_damaged_picture_is_named(content: bytes) -> None:
    with pytest.raises(DataProblem, match=r"x\.png cannot be read as a PNG"):
        task.grey_levels(content, "x.png")
