"""Rows of a CSV too large to be held in memory, read from front to back; the bytes written are those of one big table.

The file is read once for its columns' types, and again for each thing that is asked of it, so that it
may as well lie packed in a zip. A file that this cannot be done for exactly is held as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import reordering, tables, written
from competitions.kit.splits import Split

_SMALL = 256 << 20  # bytes; below, a table takes less memory than it is worth to read it twice
_BLOCK = 100_000  # rows at a time
_BLOCK_BYTES = 32 << 20
_HASH_KEYS = ("0123456789123456", "6543219876543210")  # two of 64 bits each
_EMPTY = "empty"

Opened = Callable[[], AbstractContextManager[IO[bytes]]]
Changed = Callable[[pd.DataFrame], pd.DataFrame]


def unchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that are to be written as they are."""
    return rows


class RowFile(Protocol):
    """The rows of a file, by position, which is their index in every table."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def __len__(self) -> int:
        """How many rows there are."""

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """All rows in their order, some at a time; all of their columns, or some."""

    def divide(
        self,
        split: Split,
        target: IO[bytes],
        scratch: Path,
        *,
        changed: Changed = unchanged,
        quote_text: bool = False,
    ) -> pd.DataFrame:
        """Write the train rows as a table in their order, and return the test rows in theirs.

        Args:
            split: the positions.
            target: an open file.
            scratch: a folder for rows that are not yet to be written.
            changed: makes of rows what is written of them.
            quote_text: as for `tables.write_csv`.
        """


def opened(source: Opened, size: int, *, text: Sequence[str] = (), words: Sequence[str] = ()) -> RowFile:
    """The rows of a CSV with a header; types are found as `tables.read_csv` finds them.

    Args:
        source: opens the file.
        size: how many bytes it has.
        text: columns to keep verbatim.
        words: columns that are text with missing cells, unless `text` is given.
    """
    streamed = _streamed(source, size, text, words) if size > _SMALL else None
    if streamed is not None:
        return streamed
    with source() as stream:
        return _HeldRows(tables.read_csv(stream, text=text or None, words=words))


@dataclass(frozen=True)
class _HeldRows:
    table: pd.DataFrame

    @property
    def columns(self) -> list[str]:
        return list(self.table.columns)

    def __len__(self) -> int:
        return len(self.table)

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        yield self.table if columns is None else self.table[list(columns)]

    def divide(
        self,
        split: Split,
        target: IO[bytes],
        scratch: Path,
        *,
        changed: Changed = unchanged,
        quote_text: bool = False,
    ) -> pd.DataFrame:
        del scratch
        starts = range(0, max(len(split.train), 1), _BLOCK)
        rows = (changed(self.table.iloc[split.train[start : start + _BLOCK]]) for start in starts)
        for number, block in enumerate(_ahead(rows)):
            tables.write_csv(block, target, header=number == 0, quote_text=quote_text)
        return self.table.iloc[split.test]


@dataclass(frozen=True)
class _StreamedRows:
    source: Opened
    size: int
    columns: list[str]
    count: int
    text: Sequence[str]
    words: Sequence[str]
    types: dict[str, str]

    def __len__(self) -> int:
        return self.count

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        rows = max(1, min(_BLOCK, _BLOCK_BYTES * self.count // self.size))
        with self.source() as stream:
            yield from tables.read_blocks(
                stream, rows, text=self.text or None, words=self.words, columns=columns, types=self.types
            )

    def divide(
        self,
        split: Split,
        target: IO[bytes],
        scratch: Path,
        *,
        changed: Changed = unchanged,
        quote_text: bool = False,
    ) -> pd.DataFrame:
        places: reordering.Places = np.full(self.count, -1, dtype=np.int64 if self.count >> 31 else np.int32)
        places[split.train] = np.arange(len(split.train))
        is_test = np.zeros(self.count, dtype=np.bool_)
        is_test[split.test] = True
        test: list[pd.DataFrame] = []
        with reordering.writer(split.train, self.size, target, scratch) as add:
            for number, block in enumerate(_ahead(self.blocks())):
                here = slice(int(block.index[0]), int(block.index[-1]) + 1)
                test.append(block[is_test[here]])
                rows = changed(block[places[here] >= 0])
                if number == 0:
                    tables.write_csv(rows.iloc[:0], target, quote_text=quote_text)
                text = BytesIO()
                tables.write_csv(rows, text, header=False, quote_text=quote_text)
                add(text.getvalue(), places[here][places[here] >= 0])
        return pd.concat(test).iloc[np.argsort(np.argsort(split.test))]


def _ahead(blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Make each block while the one before it is dealt with."""
    coming = iter(blocks)
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(next, coming, None)
        while (block := taken.result()) is not None:
            taken = pool.submit(next, coming, None)
            yield block


def _streamed(source: Opened, size: int, text: Sequence[str], words: Sequence[str]) -> RowFile | None:
    """The rows of a file to be read block by block; None if it is no plain table or one of mixed types."""
    kinds: dict[str, set[str]] = {}
    columns: list[str] = []
    count = 0
    with source() as stream:
        for block in tables.read_blocks(stream, _BLOCK, text=text or None, words=words):
            if not isinstance(block.index, pd.RangeIndex):
                return None
            count += len(block)
            columns = list(block.columns)
            for name in block.columns.difference(list(text or words), sort=False):
                kinds.setdefault(str(name), set()).add(_kind(block[name]))
    types = {name: _common(found) for name, found in kinds.items()}
    if not count or None in types.values():
        return None
    known = {name: kind for name, kind in types.items() if kind is not None}
    return _StreamedRows(source, size, columns, count, text, words, known)


def _kind(column: pd.Series[Any]) -> str:
    if column.dtype != np.float64:
        return str(column.dtype)
    if column.isna().all():
        return _EMPTY
    # what no double holds made the column text once, as `former_types` has it
    return "infinite" if (column.to_numpy() == np.inf).any() else "float64"


def _common(kinds: set[str]) -> str | None:
    """The type that pandas finds for a whole column whose pieces have these; None if that depends on the pieces."""
    some = kinds - {_EMPTY}
    if some <= {"int64", "float64"}:
        return "int64" if kinds == {"int64"} else "float64"
    return "str" if some == {"str"} else None


def groups_of(rows: RowFile, columns: Sequence[str]) -> pd.Series:
    """Number the rows so that those with equal texts in all of these columns share a number.

    Of the texts only digests are held, which are as good as never equal for two that are not.
    """
    table = pd.DataFrame(digests(rows, columns))
    return table.groupby(list(table.columns), sort=False).ngroup()


def digests(rows: RowFile, columns: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Two digests for each row of its texts in these columns."""
    found = [
        [
            pd.util.hash_pandas_object(block[list(columns)], index=False, hash_key=key).to_numpy()
            for key in _HASH_KEYS
        ]
        for block in rows.blocks(columns)
    ]
    return np.concatenate(found, axis=1).T


def write(blocks: Iterable[pd.DataFrame], path: Path) -> None:
    """Write a table that comes block by block, as `tables.write_csv` writes a whole one."""
    with written.created(path) as stream:
        for number, block in enumerate(_ahead(blocks)):
            tables.write_csv(block, stream, header=number == 0)
