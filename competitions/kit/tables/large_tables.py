"""Raw tables that may be too large for pandas, read in blocks of rows with given dtypes.

A table below 640 MB is read as a whole, with the dtypes that pandas infers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import IO, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import archives, tables
from mlebench_console.competitions.kit.splits import Positions, Split
from mlebench_console.competitions.raw import RawDataProblem, RawPath

_SMALL = 640 << 20  # bytes; with pandas 3 such a table takes about 2 GB
_ROWS = 25_000  # per block
_WORKERS = 2
_HASH_KEYS = ("0123456789123456", "6543219876543210")  # two of 64 bits each

Flags = npt.NDArray[np.bool_]
Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True)
class RawTable:
    """A table of the raw data.

    Attributes:
        path: the file.
        member: the table's name inside, if the file is a zip.
        types: the dtypes that pandas infers for the columns of the real data; used where the table is large.
        text: columns to keep verbatim.
        words: columns that are text with missing cells, unless `text` is given.
    """

    path: RawPath
    member: str | None
    types: Mapping[str, str]
    text: Sequence[str] = ()
    words: Sequence[str] = ()

    @cached_property
    def is_large(self) -> bool:
        """Whether it is read in blocks."""
        size = (
            self.path.stat().st_size if self.member is None else archives.member_size(self.path, self.member)
        )
        return size > _SMALL

    @cached_property
    def columns(self) -> list[str]:
        """The names of its columns."""
        with opened(self.path, self.member) as stream:
            return list(tables.read_csv(BytesIO(stream.readline())).columns)

    @cached_property
    def whole(self) -> pd.DataFrame:
        """All rows of a table that is not large.

        Raises:
            DataProblem: it is not a table.
        """
        with opened(self.path, self.member) as stream:
            table = tables.read_csv(stream, text=self.text or None, words=self.words)
        return table.reset_index(drop=True)  # pandas makes surplus cells in every row the index

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield the rows in blocks from front to back; their index counts all rows.

        Raises:
            DataProblem: it is not a table, or a column is not of its given dtype.
        """
        if self.is_large:
            with opened(self.path, self.member) as stream:
                yield from self.parsed(stream, columns)
        else:
            yield self.whole if columns is None else self.whole[list(columns)]

    def parsed(self, stream: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Read CSV text with the header and some rows of a large table, as `blocks` does.

        Raises:
            ValueError: it is not a table, or a column is not of its given dtype.
        """
        # pandas infers text columns in half the time that it takes where the dtype is given
        numbers = {name: kind for name, kind in self.types.items() if kind != "str"}
        for block in tables.read_blocks(
            stream, _ROWS, text=self.text or None, words=self.words, columns=columns, types=numbers
        ):
            if not isinstance(block.index, pd.RangeIndex):
                raise ValueError("its rows have more cells than its header")
            for name in block.columns.difference(list(numbers)):
                if block[name].dtype != "str":
                    if block[name].notna().any():
                        raise ValueError(f"column {name} holds numbers where text is expected")
                    block[name] = block[name].astype("str")
            yield block


@contextmanager
def opened(path: RawPath, member: str | None) -> Iterator[IO[bytes]]:
    """Open a raw table, or a member of a zip that is one; errors of reading it inside become problems.

    Raises:
        DataProblem: it cannot be read as a table: it is incomplete or garbled, or a folder.
    """
    try:
        with path.open("rb") if member is None else archives.opened_member(path, member) as stream:
            yield stream
    except (ValueError, IsADirectoryError) as error:
        raise unreadable(path, error) from error


def unreadable(path: RawPath, why: object) -> RawDataProblem:
    """Return the problem of a raw file that is not a table, or not of the expected content."""
    return RawDataProblem(f"{path} cannot be read as a table", str(why))


def _mapped(make: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
    """Apply a function to items in a thread pool and yield the results in order, reading few items ahead."""
    coming: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(_WORKERS) as threads:
        for item in items:
            coming.append(threads.submit(make, item))
            if len(coming) > _WORKERS:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def write_rest(
    blocks: Iterable[pd.DataFrame],
    held_out: Callable[[pd.DataFrame], Flags | pd.Series],
    target: IO[bytes],
    *,
    quote_text: bool = False,
) -> pd.DataFrame:
    """Write the rows of a table, block by block, except those held out, which are returned."""

    def parted(block: pd.DataFrame) -> tuple[pd.DataFrame, bytes]:
        flags = held_out(block)
        return block[flags], _csv_of(block[~flags], quote_text=quote_text)

    kept: list[pd.DataFrame] = []
    for held, text in _mapped(parted, blocks):
        if not kept:
            tables.write_csv(held.iloc[:0], target, quote_text=quote_text)
        target.write(text)
        kept.append(held)
    return pd.concat(kept)


def write_train(
    table: RawTable, split_of: Callable[[int], Split], target: IO[bytes], *, apart: str | None = None
) -> pd.DataFrame:
    """Write the train rows of a large table in the order of a split, and return its test rows.

    Rows are kept in memory as the text to be written, which takes about as much memory as the file.

    Args:
        table: a large one.
        split_of: returns the split for a number of rows.
        target: an open file.
        apart: a column of which no value may be in both parts.

    Raises:
        DataProblem: the table cannot be read, or a value is in both parts.
    """

    def written(block: pd.DataFrame) -> tuple[bytes, Positions, npt.NDArray[np.uint64] | None]:
        rows = _csv_of(block)
        mark = None if apart is None else pd.util.hash_array(block[apart].to_numpy(), categorize=False)
        return rows, _row_ends(rows), mark

    text, ends, marks = bytearray(), [np.zeros(1, dtype=np.int64)], []
    for rows, ends_here, mark in _mapped(written, table.blocks()):
        ends.append(ends_here + len(text))
        text += rows
        if mark is not None:
            marks.append(mark)
    edges = np.concatenate(ends)
    split = split_of(len(edges) - 1)
    if apart is not None:
        cells = pd.Series(np.concatenate(marks))
        if cells[split.train].isin(cells[split.test]).any():
            raise in_both_parts(table.path, apart)
    header = BytesIO()
    tables.write_csv(pd.DataFrame(columns=table.columns), header)
    target.write(header.getvalue())
    for rows in _in_order(text, edges, split.train):
        target.write(rows)
    test = BytesIO(b"".join([header.getvalue(), *_in_order(text, edges, split.test)]))
    return pd.concat(table.parsed(test))


def in_both_parts(path: RawPath, column: str) -> RawDataProblem:
    """Return the problem of a table with a value that is in train and in test rows."""
    return RawDataProblem(
        f"{path} is not in the expected form", f"a {column} of a test row occurs there twice"
    )


def _csv_of(rows: pd.DataFrame, *, quote_text: bool = False) -> bytes:
    text = BytesIO()
    tables.write_csv(rows, text, header=False, quote_text=quote_text)
    return text.getvalue()


def _row_ends(text: bytes) -> Positions:
    """Return the end position of each row; a line end within quotes does not end the row."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n")) + 1
    if b'"' in text:
        quotes = np.flatnonzero(letters == ord('"'))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return ends


def _in_order(text: bytearray, edges: Positions, rows: Positions) -> Iterator[bytes]:
    """Yield the text of these rows in order, many rows at a time."""
    with memoryview(text) as view:
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            places = zip(edges[some].tolist(), edges[some + 1].tolist(), strict=True)
            yield b"".join([view[first:end] for first, end in places])


def groups_of(table: RawTable, columns: Sequence[str]) -> pd.Series:
    """Number the rows so that those with equal texts in all of these columns share a number.

    Only digests are kept, of 128 bits, so that unequal texts practically never share a number.
    """
    found = pd.DataFrame(digests(table, columns))
    return found.groupby(list(found.columns), sort=False).ngroup()


def digests(table: RawTable, columns: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return two digests for each row of its texts in these columns."""
    found = [
        [
            pd.util.hash_pandas_object(block[list(columns)], index=False, hash_key=key).to_numpy()
            for key in _HASH_KEYS
        ]
        for block in table.blocks(columns)
    ]
    return np.concatenate(found, axis=1).T
