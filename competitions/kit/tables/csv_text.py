"""Format tables as the CSV text that pandas would write, many rows at a time; writing files is in `tables`.

Short columns are built character by character (see `number_text`), long texts as a list. Columns other than
integers, floats, booleans and text are left to pandas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit.tables import number_text
from mlebench_console.competitions.kit.tables.number_text import Planes

_BLOCK = (
    4 << 20
)  # bytes of text per block: smaller ones cost more calls, larger ones leave threads idle at the end
_MOST_ROWS = 1 << 15
_SAMPLED = 64  # rows from which the average length is estimated
_WORKERS = 2
_AHEAD = 8  # blocks in memory
_NARROW = 40  # characters; longer texts are cheaper one by one
_QUOTE, _NEWLINE = ord('"'), ord("\n")
_UNSUPPORTED = ("\r", "\0")  # whether "\r" is quoted depends on Python's version; 0 means "no character" here

_Cells = Planes | list[str]


@dataclass(frozen=True)
class CellFormat:
    """The format of cells.

    Attributes:
        significant: the significant digits of floats, as with `%g`; by default they have their shortest form.
        separator: the character between cells.
        quoted: whether every text is quoted, or only where necessary.
    """

    significant: int | None = None
    separator: str = ","
    quoted: bool = False

    def must_quote(self, text: str) -> bool:
        """Return whether a text must be quoted."""
        return '"' in text or self.separator in text or "\n" in text


class _Unusual(Exception):
    """A block contains something that only pandas can format."""


def blocks(table: pd.DataFrame, form: CellFormat) -> Iterator[bytes | pd.DataFrame]:
    """Yield the rows of a table as CSV text, in blocks without a header; unusual blocks as tables for pandas."""
    renderers = [_renderer(table.iloc[:, place], form) for place in range(table.shape[1])]
    known = [renderer for renderer in renderers if renderer is not None]
    # the csv module quotes an empty cell that is the only one of its row
    if len(known) < max(len(renderers), 2):
        yield table
        return

    step = _rows_at_once(table)

    def rendered(start: int) -> bytes | pd.DataFrame:
        rows = slice(start, start + step)
        try:
            return _joined([renderer(rows) for renderer in known], form.separator)
        except _Unusual:
            return table.iloc[rows]

    starts = range(0, len(table), step)
    coming: deque[Future[bytes | pd.DataFrame]] = deque()
    for start in starts:
        coming.append(_threads().submit(rendered, start))
        if len(coming) > _AHEAD:
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()


def _rows_at_once(table: pd.DataFrame) -> int:
    first = table.iloc[:_SAMPLED]
    letters = len(first.to_csv(index=False, header=False)) // max(len(first), 1)
    return max(min(_MOST_ROWS, _BLOCK // max(letters, 1)), 1)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the process's threads; starting new ones takes milliseconds per table while others work."""
    return ThreadPoolExecutor(_WORKERS)  # numpy releases the interpreter lock


def _renderer(column: pd.Series[Any], form: CellFormat) -> Callable[[slice], _Cells] | None:
    kind = column.dtype
    if isinstance(kind, pd.StringDtype):
        texts = column.array
        return lambda rows: _of_texts(texts[rows].to_numpy(dtype=object, na_value=""), form)
    values = column.to_numpy()
    if kind == np.float64:
        return lambda rows: _of_decimals(values[rows], form)
    if kind == np.bool_:
        return lambda rows: number_text.of_bools(values[rows])
    if isinstance(kind, np.dtype) and kind.kind in "iu":
        return lambda rows: number_text.of_whole(values[rows])
    return None


def _of_decimals(values: npt.NDArray[np.float64], form: CellFormat) -> Planes:
    if form.quoted and np.isnan(values).any():  # a missing number is quoted, unlike the others
        raise _Unusual
    return number_text.of_decimals(values, significant=form.significant)


def _of_texts(cells: npt.NDArray[Any], form: CellFormat) -> _Cells:
    texts: list[str] = cells.tolist()
    joined = "".join(texts)
    if any(letter in joined for letter in _UNSUPPORTED):
        raise _Unusual
    if '"' in joined or "\n" in joined or (not form.quoted and form.separator in joined):
        return [_quoted(text) if form.quoted or form.must_quote(text) else text for text in texts]
    if not joined.isascii() or len(joined) > _NARROW * len(texts):
        return [_quoted(text) for text in texts] if form.quoted else texts
    lengths = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
    width = int(lengths.max(initial=0))
    if width > _NARROW:
        return [_quoted(text) for text in texts] if form.quoted else texts
    letters = np.frombuffer(joined.encode() + bytes(width), dtype=np.uint8)
    if len(joined) == width * len(texts):
        planes = letters[: len(joined)].reshape(len(texts), width).T
    else:
        starts = np.cumsum(lengths) - lengths
        planes = np.empty((width, len(texts)), dtype=np.uint8)
        for place in range(width):
            planes[place] = letters[starts + place] * (lengths > place)
    return np.pad(planes, ((1, 1), (0, 0)), constant_values=_QUOTE) if form.quoted else planes


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"'


def _joined(columns: list[_Cells], separator: str) -> bytes:
    """Join columns to rows: neighbouring short columns in one piece, long texts between them."""
    pieces: list[list[str]] = []
    narrow: list[Planes] = []
    for cells in columns:
        if isinstance(cells, list):
            if narrow:
                pieces.append(_text(narrow, separator).decode("ascii").split("\n")[:-1])
            pieces.append(cells)
            narrow = []
        else:
            narrow.append(cells)
    if not pieces:
        return _text(narrow, separator)
    if narrow:
        pieces.append(_text(narrow, separator).decode("ascii").split("\n")[:-1])
    return "\n".join([*map(separator.join, zip(*pieces, strict=True)), ""]).encode()


def _text(columns: list[Planes], separator: str) -> bytes:
    count = columns[0].shape[1]
    letters = np.empty((count, sum(map(len, columns)) + len(columns)), dtype=np.uint8)
    place = 0
    for planes in columns:
        for plane in planes:  # one by one is four times as fast as transposing the whole
            letters[:, place] = plane
            place += 1
        letters[:, place] = ord(separator)
        place += 1
    letters[:, -1] = _NEWLINE
    flat = letters.ravel()
    text: bytes = flat[flat != 0].tobytes()
    return text
