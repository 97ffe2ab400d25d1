"""Rows of a CSV too large to be held in memory, taken in any order; the bytes written are those of one big table.

The file is scanned once for where its lines begin and once for its columns' types; after that any
rows can be parsed by themselves. A file that this cannot be done for exactly is held as a table.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import tables, written
from competitions.kit.raw_files import on_disk
from competitions.raw import RawPath

Positions = npt.NDArray[np.intp]

_SMALL = 640 << 20  # bytes; below, a table takes less memory than it is worth to read it twice
_SCAN = 8 << 20
_BLOCK = 250_000  # rows parsed at a time
_MAPPED = 8_192  # rows taken before pages are given back; the system maps sixteen for each
_QUOTE, _NEWLINE = 34, 10
_BEFORE_A_CELL = np.isin(np.arange(256), [_QUOTE, _NEWLINE, 44])  # 44 is the comma
_HASH_KEYS = ("0123456789123456", "6543219876543210")  # two of 64 bits each
_KNOWN = {"int64", "float64", "str"}


@dataclass(frozen=True)
class RowFile:
    """The rows of a file, by position.

    Attributes:
        count: how many there are.
        parsed: gives some of them as a table with the types that they have in the whole.
    """

    count: int
    parsed: Callable[[Positions], pd.DataFrame]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.parsed(np.arange(0)).columns)

    def __len__(self) -> int:
        return self.count

    def blocks(self, rows: Positions | None = None) -> Iterator[pd.DataFrame]:
        """These rows in their order, or all of them, some at a time."""
        chosen = np.arange(self.count) if rows is None else rows
        for start in range(0, max(len(chosen), 1), _BLOCK):
            yield self.parsed(chosen[start : start + _BLOCK])


def opened(path: RawPath, *, text: Sequence[str] = (), words: Sequence[str] = ()) -> RowFile:
    """The rows of a CSV with a header; types are found as `tables.read_csv` finds them.

    Args:
        path: the file.
        text: columns to keep verbatim.
        words: columns that are text with missing cells, unless `text` is given.
    """
    plain = _plain(path, text, words) if path.stat().st_size > _SMALL else None
    if plain is not None:
        return plain
    table = tables.read_csv(path, text=text or None, words=words)
    return RowFile(len(table), lambda rows: table.iloc[rows])


def _plain(path: RawPath, text: Sequence[str], words: Sequence[str]) -> RowFile | None:
    with on_disk(path) as stream:
        starts = _line_starts(stream)
        stream.seek(0)
        types = _types(stream, text or words)
        if starts is None or types is None or types.rows == 0 or types.rows != len(starts) - 2:
            return None
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    header = content[: int(starts[1])]

    def parsed(rows: Positions) -> pd.DataFrame:
        lines = [b""] * len(rows)
        order = np.argsort(rows)  # from front to back, neighbours are found on the same pages
        for start in range(0, len(order), _MAPPED):
            places = order[start : start + _MAPPED]
            edges = (places, starts[rows[places] + 1], starts[rows[places] + 2])
            for place, first, end in zip(*(edge.tolist() for edge in edges), strict=True):
                lines[place] = content[first:end]
            content.madvise(mmap.MADV_DONTNEED)  # or the whole file would come to count as our memory
        joined = b"".join([header, *(line if line.endswith(b"\n") else line + b"\n" for line in lines)])
        return tables.read_csv(BytesIO(joined), text=text or None, words=words, types=types.columns)

    return RowFile(types.rows, parsed)


def _line_starts(stream: IO[bytes]) -> npt.NDArray[np.int64] | None:
    """Where each line begins, blank ones left out, and where the file ends; None if this cannot be told."""
    found = [np.zeros(1, dtype=np.int64)]
    offset = 0
    inside = 0  # whether a quoted cell is open
    last = np.uint8(_NEWLINE)
    while block := stream.read(_SCAN):
        if block.endswith(b"\r"):
            more = stream.read(1)
            if not more:
                return None
            block += more
        if block.count(b"\r") != block.count(b"\r\n"):
            return None
        data = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        quotes = np.flatnonzero(data == _QUOTE)
        opening = quotes[np.arange(len(quotes)) % 2 == inside]
        if not _BEFORE_A_CELL[np.append(last, data)[opening]].all():
            return None  # a quote in the midst of a cell is a letter like others
        outside = (np.searchsorted(quotes, ends) + inside) % 2 == 0
        found.append(ends[outside] + offset + 1)
        inside = (inside + len(quotes)) % 2
        last = data[-1]
        offset += len(block)
    starts = np.concatenate(found)
    if starts[-1] != offset:  # the last line has no line end
        starts = np.append(starts, offset)
    # An empty line is no row and stays with the line before it. Other lines that are no rows, such as blanks
    # alone, are found out by the parser's count of rows.
    kept: npt.NDArray[np.int64] = starts[np.append(np.diff(starts) > 1, True)]
    return kept


@dataclass(frozen=True)
class _Types:
    columns: dict[str, str]
    rows: int


def _types(stream: IO[bytes], known: Sequence[str]) -> _Types | None:
    """The type of each column over all rows; None if a column is text here and numbers there."""
    seen: dict[str, set[str]] = {}
    rows = 0
    with pd.read_csv(stream, chunksize=4 * _BLOCK) as chunks:
        for chunk in chunks:
            rows += len(chunk)
            for name, dtype in chunk.drop(columns=list(known)).dtypes.items():
                seen.setdefault(str(name), set()).add(str(dtype))
    columns = {}
    for name, kinds in seen.items():
        if kinds == {"int64", "float64"}:
            kinds = {"float64"}
        if len(kinds) > 1 or not kinds <= _KNOWN:
            return None
        columns[name] = kinds.pop()
    return _Types(columns, rows)


def groups_of(rows: RowFile, columns: Sequence[str]) -> pd.Series:
    """Number the rows so that those with equal texts in all of these columns share a number.

    Of the texts only digests are held, which are as good as never equal for two that are not.
    """
    digests = [
        [
            pd.util.hash_pandas_object(block[list(columns)], index=False, hash_key=key).to_numpy()
            for key in _HASH_KEYS
        ]
        for block in rows.blocks()
    ]
    table = pd.DataFrame(np.concatenate(digests, axis=1).T)
    return table.groupby(list(table.columns), sort=False).ngroup()


def write(blocks: Iterable[pd.DataFrame], path: Path) -> None:
    """Write a table that comes block by block, as `tables.write_csv` writes a whole one."""
    with written.created(path) as stream, ThreadPoolExecutor(1) as pool:
        coming = iter(blocks)
        taken = pool.submit(next, coming, None)
        for number in itertools.count():
            block = taken.result()
            if block is None:
                break
            taken = pool.submit(next, coming, None)  # while this one is written
            tables.write_csv(block, stream, header=number == 0)
