"""CSV text in which each line is a row: its rows are counted and cut into pieces without parsing a cell.

Text with quotes, returns, or lines that are empty or begin with a blank is not plain: what is a row there is the
parser's to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

_ODD = (b'"', b"\r", b"\0")
_NEWLINE = ord("\n")
_ODD_STARTS = np.frombuffer(b"\n \t", dtype=np.uint8)
PIECE = 8 << 20  # bytes: enough to be worth a call, and many of them for the threads to share


@dataclass(frozen=True)
class Piece:
    """Some rows behind a header.

    Attributes:
        first: the number of the first row.
        rows: how many there are.
        content: the header and the rows.
    """

    first: int
    rows: int
    content: bytes


def count(stream: IO[bytes]) -> int | None:
    """How many rows stand behind the header; None where the text is not plain."""
    lines = 0
    before = (
        b"\n"  # as if a line had ended before the header; of the last line it does not matter whether it does
    )
    while len(block := before + stream.read(PIECE)) > 1:
        letters = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(letters[:-1] == _NEWLINE)
        if any(letter in block for letter in _ODD) or np.isin(letters[ends + 1], _ODD_STARTS).any():
            return None
        lines += len(ends)
        before = block[-1:]
    return max(lines - 1, 0)


def pieces(stream: IO[bytes]) -> Iterator[Piece]:
    """The rows of plain text from front to back; each piece begins with the header."""
    header = stream.readline()
    first, begun = 0, b""
    while block := stream.read(PIECE):
        end = block.rfind(b"\n") + 1
        if not end:
            begun += block
            continue
        rows = _lines(block)
        yield Piece(first, rows, b"".join([header, begun, block[:end]]))
        first, begun = first + rows, block[end:]
    if begun:
        yield Piece(first, 1, header + begun)


def _lines(block: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == _NEWLINE))
