"""Rows of a CSV that may be too large to be held in memory; the bytes written are those of one big table.

A large file is read again for each thing that is asked of it, so that it may as well lie packed in a zip.
One that this cannot be done for exactly is held as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import tables
from competitions.kit.placing import checksummed
from competitions.kit.tables import plain_rows
from competitions.kit.tables.held_rows import held
from competitions.kit.tables.in_turn import ahead
from competitions.kit.tables.row_blocks import Opened, RowBlocks
from competitions.kit.tables.rows import RowFile
from competitions.kit.tables.streamed_rows import PresumedRows, Unreadable, typed

_SMALL = 640 << 20  # bytes; below, a table takes less memory than it is worth to read it block by block
_BLOCK = 100_000  # rows at a time, where the parser takes them
_HASH_KEYS = ("0123456789123456", "6543219876543210")  # two of 64 bits each


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
        return held(source, text, words)
    with source() as stream:
        lines = plain_rows.count(stream)
    if not lines:
        return typed(RowBlocks(source, text, words, None, _BLOCK), size)
    with source() as stream:
        columns = list(tables.read_block(stream.readline()).columns)
    return PresumedRows(RowBlocks(source, text, words, lines, _BLOCK), size, columns, unreadable)


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
    with checksummed.created(path) as stream:
        for number, block in enumerate(ahead(blocks)):
            tables.write_csv(block, stream, header=number == 0)
