"""The two parts that the rows of a table are divided into, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import tables
from competitions.kit.tables.column_kinds import kind_of
from competitions.kit.tables.reordering import Places
from competitions.kit.tables.rows import Division, NotApartError, RowFile


@dataclass(frozen=True)
class Block:
    """What becomes of some rows.

    Attributes:
        first: the number of the first one.
        kinds: those of their columns.
        test: the test rows.
        text: the train rows as they are written, by their places.
        places: these places.
        marks: of all rows' cells in a column, equal for equal ones and hardly ever for others.
    """

    first: int
    kinds: tuple[str, ...]
    test: pd.DataFrame
    text: bytes
    places: Places
    marks: npt.NDArray[np.uint64]


class Parts:
    """The two parts that rows are divided into."""

    def __init__(self, division: Division, count: int) -> None:
        self._division = division
        split = division.split
        self._places: Places = np.full(count, -1, dtype=np.int64 if count >> 31 else np.int32)
        self._places[split.train] = np.arange(len(split.train))
        self._is_test = np.zeros(count, dtype=np.bool_)
        self._is_test[split.test] = True

    def of(self, block: pd.DataFrame) -> Block:
        """What becomes of a block."""
        first = int(block.index[0])
        here = slice(first, first + len(block))
        places = self._places[here]
        chosen = np.flatnonzero(places >= 0)
        chosen = chosen[np.argsort(places[chosen])]
        rows = self._division.changed(block.iloc[chosen])
        return Block(
            first=first,
            kinds=tuple(kind_of(block.iloc[:, place]) for place in range(block.shape[1])),
            test=block[self._is_test[here]],
            text=self._text(rows, header=False),
            places=places[chosen],
            marks=np.zeros(0, dtype=np.uint64)
            if self._division.apart is None
            else _marks(block[self._division.apart]),
        )

    def header(self, block: Block) -> bytes:
        """The header of the table that is written."""
        return self._text(self._division.changed(block.test.iloc[:0]), header=True)

    def _text(self, rows: pd.DataFrame, *, header: bool) -> bytes:
        text = BytesIO()
        tables.write_csv(rows, text, header=header, quote_text=self._division.quote_text)
        return text.getvalue()

    def test_of(self, blocks: Sequence[Block], rows: RowFile) -> pd.DataFrame:
        """The test rows of all blocks in their order."""
        test = pd.concat([block.test for block in blocks]).iloc[
            np.argsort(np.argsort(self._division.split.test))
        ]
        if self._division.apart is not None:
            marks = np.concatenate([block.marks for block in blocks])
            some = np.sort(marks[self._is_test])
            others = marks[self._places >= 0]
            nearest = np.minimum(np.searchsorted(some, others), len(some) - 1)
            if len(some) and (some[nearest] == others).any():
                expect_apart(rows, self._division, test)
        return test


def _marks(column: pd.Series[Any]) -> npt.NDArray[np.uint64]:
    return pd.util.hash_array(column.to_numpy(), categorize=False)


def expect_apart(rows: RowFile, division: Division, test: pd.DataFrame) -> None:
    """No cell of the column that is to be apart stands in both parts.

    Raises:
        NotApartError: one does.
    """
    column = division.apart
    if column is None:
        return
    wanted = set(test[column].tolist())
    is_train = np.zeros(len(rows), dtype=np.bool_)
    is_train[division.split.train] = True
    for block in rows.blocks([column]):
        cells = block[column][is_train[block.index]]
        if not wanted.isdisjoint(cells.tolist()):
            raise NotApartError
