"""Texts as bytes that lie in one array, so that millions are compared without a Python object for each.

Two texts are equal where their bytes are; NUL fills up what is short, so texts that end with NUL are not for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Positions = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_WORD = 8
_MIXERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SHIFT = np.uint64(29)


@dataclass(frozen=True)
class Spellings:
    """Texts as stretches of an array.

    Attributes:
        content: the bytes of all texts, in UTF-8, and maybe others between them.
        starts: where each text starts.
        lengths: how many bytes it has.
    """

    content: Bytes
    starts: Positions
    lengths: Positions

    @property
    def longest(self) -> int:
        """How many bytes the longest text has."""
        return int(self.lengths.max(initial=0))

    def words(self, longest: int) -> list[Words]:
        """The first bytes of each text up to `longest`, eight to a column, filled up with NUL."""
        content = np.append(self.content, np.zeros(_WORD, dtype=np.uint8))
        at_each_byte = np.ndarray(len(content) - _WORD + 1, dtype="<u8", buffer=content, strides=(1,))
        masks = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype=np.uint64)
        shortest = int(self.lengths.min(initial=longest))
        words = []
        for offset in range(0, longest, _WORD):
            if offset + _WORD <= shortest:  # nothing to fill up
                words.append(at_each_byte[self.starts + offset])
                continue
            left = np.clip(self.lengths - offset, 0, _WORD)
            words.append(at_each_byte[np.where(left > 0, self.starts + offset, 0)] & masks[left])
        return words

    def bytes_of(self, which: Positions) -> list[bytes]:
        """Some of the texts themselves."""
        content = self.content.tobytes()
        starts, ends = self.starts[which].tolist(), (self.starts + self.lengths)[which].tolist()
        return [content[start:end] for start, end in zip(starts, ends, strict=True)]


def mixed(columns: Sequence[Words]) -> Words:
    """Numbers that hardly ever are equal where rows of the columns differ; sorting one column is much faster."""
    numbers = columns[0] * _MIXERS[0]
    for place, column in enumerate(columns[1:], 1):
        numbers ^= numbers >> _SHIFT
        numbers ^= column
        numbers *= _MIXERS[place % len(_MIXERS)]
    return numbers


def of_column(column: pd.Series) -> Spellings:
    """The texts of a column of type `str` in which none is missing."""
    stored = _in_arrow(column)
    if stored is None:
        return _of_texts(column.tolist())
    _, places, content = stored.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[stored.offset : stored.offset + len(stored) + 1]
    return Spellings(_as_bytes(content), ends[:-1], np.diff(ends))


def joined(column: pd.Series) -> Bytes:
    """The bytes of all texts of a column of type `str` with a line feed after each but the last; none is missing."""
    stored = _in_arrow(column)
    if stored is None:
        return _encoded("\n".join(column.tolist()))
    import pyarrow as pa
    import pyarrow.compute as pc

    in_one = pc.binary_join(
        pa.LargeListArray.from_arrays([0, len(stored)], stored), pa.scalar("\n", pa.large_string())
    )
    _, places, content = in_one.buffers()
    start, end = np.frombuffer(places, dtype=np.int64)[in_one.offset : in_one.offset + 2].tolist()
    return _as_bytes(content)[start:end]


def _in_arrow(column: pd.Series) -> Any | None:
    # the column as pyarrow keeps it, where pandas has it and uses it
    if not isinstance(column.dtype, pd.StringDtype) or column.dtype.storage != "pyarrow":
        return None
    import pyarrow as pa

    chunks = column.array.__arrow_array__().cast(pa.large_string())
    return chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks


def _as_bytes(buffer: Any | None) -> Bytes:
    return np.frombuffer(buffer if buffer is not None else b"", dtype=np.uint8)


def _of_texts(texts: list[str]) -> Spellings:
    lengths = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
    content = _encoded("".join(texts))
    if len(content) != lengths.sum():
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, encoded), dtype=np.intp, count=len(texts))
    return Spellings(content, np.cumsum(lengths) - lengths, lengths)


def _encoded(text: str) -> Bytes:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
