"""What the rows of a raw table are to those who divide it, whether they are held in memory or streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import pandas as pd

from competitions.kit.splits import Split

Changed = Callable[[pd.DataFrame], pd.DataFrame]


def unchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that are to be written as they are."""
    return rows


@dataclass(frozen=True)
class Division:
    """How rows are divided into train and test rows.

    Attributes:
        split: the positions.
        changed: makes of train rows what is written of them; several threads call it.
        quote_text: as for `tables.write_csv`.
        apart: a column of which no cell may stand in both parts.
    """

    split: Split
    changed: Changed = unchanged
    quote_text: bool = False
    apart: str | None = None


class NotApartError(Exception):
    """A cell of a test row stands in a train row too, in a column where none may."""


class RowFile(Protocol):
    """The rows of a file, by position, which is their index in every table."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def __len__(self) -> int:
        """How many rows there are."""

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """All rows in their order, some at a time; all of their columns, or some."""

    def divide(self, division: Division, target: IO[bytes], scratch: Path) -> pd.DataFrame:
        """Write the train rows as a table in their order, and return the test rows in theirs.

        Args:
            division: which rows are which.
            target: an open file.
            scratch: a folder for rows that are not yet to be written.

        Raises:
            NotApartError: the parts share what they must not.
        """
