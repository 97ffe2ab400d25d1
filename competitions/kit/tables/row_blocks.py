"""A CSV read block by block from front to back, several at a time; what becomes of them is the caller's matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import IO, TypeVar

import pandas as pd

from competitions.kit import tables
from competitions.kit.tables import plain_rows
from competitions.kit.tables.in_turn import ahead, in_turn
from competitions.kit.tables.plain_rows import Piece

Opened = Callable[[], AbstractContextManager[IO[bytes]]]
Made = TypeVar("Made")


class NotAsPresumedError(Exception):
    """A block is not of the form that the whole was taken to be of."""


@dataclass(frozen=True)
class RowBlocks:
    """How a CSV is read.

    Attributes:
        source: opens it.
        text: columns to keep verbatim.
        words: columns that are text with missing cells, unless `text` is given.
        lines: how many rows it has where each line is one, so that it can be cut without being parsed.
        at_once: how many rows are taken at a time where that must be left to the parser.
    """

    source: Opened
    text: Sequence[str]
    words: Sequence[str]
    lines: int | None
    at_once: int

    def each(
        self,
        make: Callable[[pd.DataFrame], Made],
        *,
        types: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Made]:
        """What is made of each block, in their order; the rows' numbers are the index.

        Args:
            make: called in several threads.
            types: the types of columns, by pandas' names; otherwise they are found for each block by itself.
            columns: read only these.

        Raises:
            NotAsPresumedError: lines are no rows.
        """
        with self.source() as stream:
            if self.lines is None:
                blocks = tables.read_blocks(
                    stream,
                    self.at_once,
                    text=self.text or None,
                    words=self.words,
                    columns=columns,
                    types=types,
                )
                yield from in_turn(partial(make, block) for block in ahead(blocks))
                return
            parse = partial(self._parsed, columns=columns, types=types)
            yield from in_turn(partial(_made, make, parse, piece) for piece in plain_rows.pieces(stream))

    def _parsed(
        self, piece: Piece, *, types: Mapping[str, str] | None, columns: Sequence[str] | None
    ) -> pd.DataFrame:
        try:
            block = tables.read_block(
                piece.content, text=self.text or None, words=self.words, columns=columns, types=types
            )
        except ValueError as error:  # what is wrong is told in full by who reads the whole
            raise NotAsPresumedError from error
        if len(block) != piece.rows or not isinstance(block.index, pd.RangeIndex):
            raise NotAsPresumedError
        block.index = pd.RangeIndex(piece.first, piece.first + piece.rows)
        return block


def _made(make: Callable[[pd.DataFrame], Made], parse: Callable[[Piece], pd.DataFrame], piece: Piece) -> Made:
    return make(parse(piece))
