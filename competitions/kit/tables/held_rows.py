"""Rows that are held in memory as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pandas as pd

from competitions.kit import tables
from competitions.kit.tables.in_turn import ahead
from competitions.kit.tables.row_blocks import Opened
from competitions.kit.tables.row_parts import expect_apart
from competitions.kit.tables.rows import Division, RowFile

_ROWS = 100_000  # written at a time


def held(source: Opened, text: Sequence[str], words: Sequence[str]) -> RowFile:
    """The rows of a file that is read as a whole."""
    with source() as stream:
        table = tables.read_csv(stream, text=text or None, words=words)
    return HeldRows(table.reset_index(drop=True))  # surplus cells in every row would be its index


@dataclass(frozen=True)
class HeldRows:
    """All rows as a table."""

    table: pd.DataFrame

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.columns)

    def __len__(self) -> int:
        return len(self.table)

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """All rows in their order, as `RowFile` has it."""
        yield self.table if columns is None else self.table[list(columns)]

    def divide(self, division: Division, target: IO[bytes], scratch: Path) -> pd.DataFrame:
        """Write the train rows and return the test rows, as `RowFile` has it."""
        del scratch
        train = division.split.train
        starts = range(0, max(len(train), 1), _ROWS)
        rows = (division.changed(self.table.iloc[train[start : start + _ROWS]]) for start in starts)
        for number, block in enumerate(ahead(rows)):
            tables.write_csv(block, target, header=number == 0, quote_text=division.quote_text)
        test = self.table.iloc[division.split.test]
        expect_apart(self, division, test)
        return test
