"""Rows that are read from front to back each time they are asked for, and never held all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import pandas as pd

from competitions.kit import tables
from competitions.kit.tables import reordering
from competitions.kit.tables.column_kinds import PLAIN, common, kind_of
from competitions.kit.tables.held_rows import held
from competitions.kit.tables.row_blocks import NotAsPresumedError, RowBlocks
from competitions.kit.tables.row_parts import Block, Parts
from competitions.kit.tables.rows import Division, RowFile, unchanged

Unreadable = Callable[[ValueError], Exception]


@dataclass(frozen=True)
class StreamedRows:
    """Rows whose columns have these types, whatever block they are in."""

    rows: RowBlocks
    size: int
    columns: list[str]
    count: int
    types: dict[str, str]

    def __len__(self) -> int:
        return self.count

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """All rows in their order, as `RowFile` has it."""
        return self.rows.each(unchanged, types=self.types, columns=columns)

    def divide(self, division: Division, target: IO[bytes], scratch: Path) -> pd.DataFrame:
        """Write the train rows and return the test rows, as `RowFile` has it."""
        parts = Parts(division, self.count)
        blocks: list[Block] = []
        with reordering.writer(division.split.train, self.size, target, scratch) as add:
            for block in self.rows.each(parts.of, types=self.types):
                if not blocks:
                    target.write(parts.header(block))
                blocks.append(_added(block, add))
        return parts.test_of(blocks, self)


class PresumedRows:
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
        """All rows in their order, as `RowFile` has it."""
        return self.known().blocks(columns)

    def divide(self, division: Division, target: IO[bytes], scratch: Path) -> pd.DataFrame:
        """Write the train rows and return the test rows, as `RowFile` has it."""
        # where rows are written as they come it would be too late to find other types
        if self._known is None and not reordering.keeps(division.split.train):
            try:
                return self._divided(division, target, scratch)
            except NotAsPresumedError:
                pass  # nothing is written yet
        return self.known().divide(division, target, scratch)

    def _divided(self, division: Division, target: IO[bytes], scratch: Path) -> pd.DataFrame:
        parts = Parts(division, len(self))
        blocks: list[Block] = []
        with (
            tables.mixed_types_allowed(),
            reordering.writer(division.split.train, self._size, target, scratch) as add,
        ):
            for block in self._rows.each(parts.of):
                blocks.append(_added(block, add))
            kinds = {block.kinds for block in blocks}
            if len(kinds) != 1 or not {*blocks[0].kinds} <= PLAIN:
                raise NotAsPresumedError
            target.write(parts.header(blocks[0]))
        types = dict(zip(self.columns, blocks[0].kinds, strict=True))
        self._known = StreamedRows(self._rows, self._size, self.columns, len(self), types)
        return parts.test_of(blocks, self._known)

    def known(self) -> RowFile:
        """The same rows, their types looked for in all blocks."""
        if self._known is None:
            try:
                try:
                    self._known = typed(self._rows, self._size)
                except NotAsPresumedError:
                    self._known = typed(replace(self._rows, lines=None), self._size)
            except ValueError as error:
                raise self._unreadable(error) from error
        return self._known


def _added(block: Block, add: reordering.Add) -> Block:
    """The block without its text, which is on its way."""
    add(block.first, block.text, block.places)
    return replace(block, text=b"")


def typed(rows: RowBlocks, size: int) -> RowFile:
    """Rows with the types that are right for all blocks; held as a table if there are none."""
    kinds: dict[str, set[str]] = {}
    count = 0
    columns: list[str] = []
    with tables.mixed_types_allowed():
        for found in rows.each(_Described.of):
            if not found.is_plain:
                return held(rows.source, rows.text, rows.words)
            columns = list(found.kinds)
            count += found.rows
            for name, kind in found.kinds.items():
                kinds.setdefault(name, set()).add(kind)
    types = {name: common(some) for name, some in kinds.items() if name not in (rows.text or rows.words)}
    known = {name: kind for name, kind in types.items() if kind is not None}
    if not count or len(known) < len(types):
        return held(rows.source, rows.text, rows.words)
    return StreamedRows(rows, size, columns, count, known)


@dataclass(frozen=True)
class _Described:
    """What is asked of a block to know the whole by it."""

    rows: int
    kinds: dict[str, str]
    is_plain: bool

    @classmethod
    def of(cls, block: pd.DataFrame) -> _Described:
        kinds = {str(name): kind_of(block[name]) for name in block.columns}
        return cls(len(block), kinds, isinstance(block.index, pd.RangeIndex))
