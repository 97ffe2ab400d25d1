"""Rows of a CSV too large to be held in memory, read from front to back; the bytes written are those of one big table.

The file is read again for each thing that is asked of it, so that it may as well lie packed in a zip.
A file that this cannot be done for exactly is held as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import plain_rows, reordering, tables, written
from competitions.kit.in_turn import ahead
from competitions.kit.row_blocks import NotAsPresumedError, Opened, RowBlocks
from competitions.kit.splits import Split

_SMALL = 256 << 20  # bytes; below, a table takes less memory than it is worth to read it twice
_BLOCK = 100_000  # rows at a time, where the parser takes them
_HASH_KEYS = ("0123456789123456", "6543219876543210")  # two of 64 bits each
_EMPTY = "empty"
_PLAIN_KINDS = {"int64", "float64", "str"}

Changed = Callable[[pd.DataFrame], pd.DataFrame]
Unreadable = Callable[[ValueError], Exception]


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
            changed: makes of rows what is written of them; several threads call it.
            quote_text: as for `tables.write_csv`.
        """


def opened(
    source: Opened,
    size: int,
    *,
    unreadable: Unreadable,
    text: Sequence[str] = (),
    words: Sequence[str] = (),
) -> RowFile:
    """The rows of a CSV with a header; types are found as `tables.read_csv` finds them.

    Args:
        source: opens the file.
        size: how many bytes it has.
        unreadable: what is raised when it proves to be no table, made of what the parser says.
        text: columns to keep verbatim.
        words: columns that are text with missing cells, unless `text` is given.

    Raises:
        ValueError: it is no table.
    """
    if size <= _SMALL:
        return _held(source, text, words)
    with source() as stream:
        lines = plain_rows.count(stream)
    if not lines:
        return _typed(RowBlocks(source, text, words, None, _BLOCK), size)
    with source() as stream:
        columns = list(tables.read_block(stream.readline()).columns)
    return _PresumedRows(RowBlocks(source, text, words, lines, _BLOCK), size, columns, unreadable)


def _held(source: Opened, text: Sequence[str], words: Sequence[str]) -> RowFile:
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
        for number, block in enumerate(ahead(rows)):
            tables.write_csv(block, target, header=number == 0, quote_text=quote_text)
        return self.table.iloc[split.test]


@dataclass(frozen=True)
class _StreamedRows:
    """Rows whose columns have these types, whatever block they are in."""

    rows: RowBlocks
    size: int
    columns: list[str]
    count: int
    types: dict[str, str]

    def __len__(self) -> int:
        return self.count

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        return self.rows.each(unchanged, types=self.types, columns=columns)

    def divide(
        self,
        split: Split,
        target: IO[bytes],
        scratch: Path,
        *,
        changed: Changed = unchanged,
        quote_text: bool = False,
    ) -> pd.DataFrame:
        parts = _Parts(split, self.count, changed, quote_text)
        test: list[pd.DataFrame] = []
        with reordering.writer(split.train, self.size, target, scratch) as add:
            for number, block in enumerate(self.rows.each(parts.of, types=self.types)):
                if number == 0:
                    target.write(block.header)
                test.append(block.test)
                add(block.first, block.text, block.places)
        return parts.in_order(test)


class _PresumedRows:
    """Rows of plain lines, whose types are presumed to be the same in all blocks until one proves otherwise."""

    def __init__(self, rows: RowBlocks, size: int, columns: list[str], unreadable: Unreadable) -> None:
        self.columns = columns
        self._rows = rows
        self._size = size
        self._unreadable = unreadable
        self._known: RowFile | None = None

    def __len__(self) -> int:
        return self._rows.lines or 0

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        return self.known().blocks(columns)

    def divide(
        self,
        split: Split,
        target: IO[bytes],
        scratch: Path,
        *,
        changed: Changed = unchanged,
        quote_text: bool = False,
    ) -> pd.DataFrame:
        # where rows are written as they come it would be too late to find other types
        if self._known is None and not reordering.keeps(split.train):
            parts = _Parts(split, len(self), changed, quote_text)
            try:
                return self._divided(parts, target, scratch)
            except NotAsPresumedError:
                pass  # nothing is written yet
        return self.known().divide(split, target, scratch, changed=changed, quote_text=quote_text)

    def _divided(self, parts: _Parts, target: IO[bytes], scratch: Path) -> pd.DataFrame:
        test: list[pd.DataFrame] = []
        kinds: set[tuple[str, ...]] = set()
        header = b""
        with (
            tables.mixed_types_allowed(),
            reordering.writer(parts.split.train, self._size, target, scratch) as add,
        ):
            for block in self._rows.each(parts.of):
                kinds.add(block.kinds)
                header = header or block.header
                test.append(block.test)
                add(block.first, block.text, block.places)
            if len(kinds) != 1 or not {*next(iter(kinds))} <= _PLAIN_KINDS:
                raise NotAsPresumedError
            target.write(header)
        types = dict(zip(self.columns, kinds.pop(), strict=True))
        self._known = _StreamedRows(self._rows, self._size, self.columns, len(self), types)
        return parts.in_order(test)

    def known(self) -> RowFile:
        """The same rows, their types looked for in all blocks."""
        if self._known is None:
            try:
                try:
                    self._known = _typed(self._rows, self._size)
                except NotAsPresumedError:
                    self._known = _typed(replace(self._rows, lines=None), self._size)
            except ValueError as error:
                raise self._unreadable(error) from error
        return self._known


@dataclass(frozen=True)
class _Block:
    """What becomes of some rows.

    Attributes:
        first: the number of the first one.
        kinds: those of their columns.
        test: the test rows.
        header: of the table that is written.
        text: the train rows as they are written, by their places.
        places: these places.
    """

    first: int
    kinds: tuple[str, ...]
    test: pd.DataFrame
    header: bytes
    text: bytes
    places: reordering.Places


class _Parts:
    """The two parts that rows are divided into."""

    def __init__(self, split: Split, count: int, changed: Changed, quote_text: bool) -> None:
        self.split = split
        self._changed = changed
        self._quote_text = quote_text
        self._places: reordering.Places = np.full(count, -1, dtype=np.int64 if count >> 31 else np.int32)
        self._places[split.train] = np.arange(len(split.train))
        self._is_test = np.zeros(count, dtype=np.bool_)
        self._is_test[split.test] = True

    def of(self, block: pd.DataFrame) -> _Block:
        """What becomes of a block."""
        first = int(block.index[0])
        here = slice(first, first + len(block))
        places = self._places[here]
        chosen = np.flatnonzero(places >= 0)
        chosen = chosen[np.argsort(places[chosen])]
        rows = self._changed(block.iloc[chosen])
        return _Block(
            first=first,
            kinds=tuple(_kind(block.iloc[:, place]) for place in range(block.shape[1])),
            test=block[self._is_test[here]],
            header=self._text(rows.iloc[:0], header=True),
            text=self._text(rows, header=False),
            places=places[chosen],
        )

    def _text(self, rows: pd.DataFrame, *, header: bool) -> bytes:
        text = BytesIO()
        tables.write_csv(rows, text, header=header, quote_text=self._quote_text)
        return text.getvalue()

    def in_order(self, test: list[pd.DataFrame]) -> pd.DataFrame:
        """The test rows of all blocks in their order."""
        return pd.concat(test).iloc[np.argsort(np.argsort(self.split.test))]


def _typed(rows: RowBlocks, size: int) -> RowFile:
    """Rows with the types that are right for all blocks; held as a table if there are none."""
    kinds: dict[str, set[str]] = {}
    count = 0
    columns: list[str] = []
    with tables.mixed_types_allowed():
        for found in rows.each(_Described.of):
            if not found.is_plain:
                return _held(rows.source, rows.text, rows.words)
            columns = list(found.kinds)
            count += found.rows
            for name, kind in found.kinds.items():
                kinds.setdefault(name, set()).add(kind)
    types = {name: _common(some) for name, some in kinds.items() if name not in (rows.text or rows.words)}
    known = {name: kind for name, kind in types.items() if kind is not None}
    if not count or len(known) < len(types):
        return _held(rows.source, rows.text, rows.words)
    return _StreamedRows(rows, size, columns, count, known)


@dataclass(frozen=True)
class _Described:
    """What is asked of a block to know the whole by it."""

    rows: int
    kinds: dict[str, str]
    is_plain: bool

    @classmethod
    def of(cls, block: pd.DataFrame) -> _Described:
        kinds = {str(name): _kind(block[name]) for name in block.columns}
        return cls(len(block), kinds, isinstance(block.index, pd.RangeIndex))


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
        for number, block in enumerate(ahead(blocks)):
            tables.write_csv(block, stream, header=number == 0)
