"""Cells of names separated by blanks, taken apart as bytes and numbered, millions at once.

What the names mean is for others to know: labels are in `labels`, orders in `sequences`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Positions = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_BLANK, _BREAK = 0x20, 0x0A
_WORD = 8
_SHORT = 64  # bytes; longer names are rare, and compared one by one
_MIXERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SHIFT = np.uint64(29)


@dataclass(frozen=True)
class Names:
    """The names of all rows, one after another.

    Attributes:
        row: the row of each.
        place: its place in the row.
        sizes: how many each row has.
        content: the bytes of all cells.
        starts: where in them each name starts.
        lengths: how many bytes it has.
    """

    row: Positions
    place: Positions
    sizes: Positions
    content: Bytes
    starts: Positions
    lengths: Positions

    def words(self, longest: int) -> list[Words]:
        """The first bytes of each name up to `longest`, eight to a column, filled up with NUL."""
        content = np.append(self.content, np.zeros(_WORD, dtype=np.uint8))
        at_each_byte = np.ndarray(len(content) - _WORD + 1, dtype="<u8", buffer=content, strides=(1,))
        masks = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype=np.uint64)
        words = []
        for offset in range(0, longest, _WORD):
            left = np.clip(self.lengths - offset, 0, _WORD)
            words.append(at_each_byte[np.where(left > 0, self.starts + offset, 0)] & masks[left])
        return words

    def spelt(self, which: Positions) -> list[bytes]:
        """Some of the names themselves."""
        content = self.content.tobytes()
        starts, ends = self.starts[which].tolist(), (self.starts + self.lengths)[which].tolist()
        return [content[start:end] for start, end in zip(starts, ends, strict=True)]


def split(cells: Sequence[str]) -> Names:
    """The names in each cell; any white space stands between names."""
    content = _encoded(cells)
    if int((content < _BLANK).sum()) != max(len(cells) - 1, 0) or bool((content > 0x7E).any()):
        # Breaks inside of cells, and blanks beyond ASCII, which are slower to tell from names.
        content = _encoded([" ".join(cell.split()) for cell in cells])
    edges = np.flatnonzero(np.diff(content > _BLANK, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    bounds = np.searchsorted(starts, np.flatnonzero(content == _BREAK))
    bounds = np.concatenate([[0], bounds, [len(starts)]]) if len(cells) else np.zeros(1, dtype=np.intp)
    sizes = np.diff(bounds)
    return Names(
        row=np.repeat(np.arange(len(cells)), sizes),
        place=np.arange(len(starts)) - np.repeat(bounds[:-1], sizes),
        sizes=sizes,
        content=content,
        starts=starts,
        lengths=ends - starts,
    )


def numbered(*sides: Names) -> list[Positions]:
    """A number for each name of each side, the same one for equal names and no other."""
    lengths = np.concatenate([side.lengths for side in sides])
    longest = min(int(lengths.max(initial=1)), _SHORT)
    columns = [np.concatenate(words) for words in zip(*(side.words(longest) for side in sides), strict=True)]
    codes, found = _distinct(columns)
    if (lengths > longest).any():
        long = [np.flatnonzero(side.lengths > longest) for side in sides]
        names = [name for side, which in zip(sides, long, strict=True) for name in side.spelt(which)]
        codes[lengths > longest] = found + pd.factorize(np.array(names, dtype=object))[0]
    edges = np.cumsum([len(side.lengths) for side in sides])[:-1]
    return np.split(codes, edges)


def _distinct(columns: list[Words]) -> tuple[Positions, int]:
    codes, keys = pd.factorize(mixed(columns))
    codes = np.asarray(codes, dtype=np.intp)
    first = np.zeros(len(keys), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    if all((column == column[first][codes]).all() for column in columns):
        return codes, len(keys)
    rows = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return np.asarray(rows[1], dtype=np.intp).ravel(), len(rows[0])


def mixed(columns: list[Words]) -> Words:
    """Numbers that hardly ever are equal where rows of the columns differ; sorting one column is much faster."""
    numbers = np.zeros(len(columns[0]), dtype=np.uint64)
    for column, mixer in zip(columns, _MIXERS * len(columns), strict=False):
        numbers = (numbers ^ (numbers >> _SHIFT) ^ column) * mixer
    return numbers


def _encoded(cells: Sequence[str]) -> Bytes:
    return np.frombuffer("\n".join(cells).encode("utf-8", "surrogatepass"), dtype=np.uint8)
