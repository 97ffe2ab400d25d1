"""Masks as runs of pixels, a whole column at a time: parsing, overlaps and areas in O(runs); nothing is ever painted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit.checks import shown
from competitions.task import InvalidSubmission

Whole = npt.NDArray[np.int64]

_FAR = np.int64(1) << 40  # beyond every picture; keeps start + length inside 64 bits
_BLANK = np.zeros(256, dtype=bool)
_BLANK[list(b" \t\n\v\f\r\x1c\x1d\x1e\x1f")] = True  # what str.split() takes for blanks in ASCII
_DIGIT = np.zeros(256, dtype=bool)
_DIGIT[list(b"0123456789")] = True
_END = "\0"  # between cells; submissions with NUL bytes are refused before


@dataclass(frozen=True)
class Masks:
    """One mask per row, each a set of pixels numbered from 0, as runs in ascending order.

    Attributes:
        row: which mask each run belongs to, ascending.
        start: the run's first pixel.
        stop: the pixel after its last one.
        rows: how many masks there are, empty ones included.
    """

    row: Whole
    start: Whole
    stop: Whole
    rows: int

    def areas(self) -> Whole:
        """How many pixels each mask has."""
        return _sums(self.row, self.stop - self.start, self.rows)

    def on_one_line(self, offsets: Whole) -> tuple[Whole, Whole]:
        """Starts and stops with each row's pixels moved by its offset, so that all rows share one numbering."""
        shift = offsets[self.row]
        return self.start + shift, self.stop + shift


def overlaps(first: Masks, second: Masks) -> Whole:
    """How many pixels the masks of each row have in common."""
    reach = max(int(first.stop.max(initial=0)), int(second.stop.max(initial=0)))
    offsets = np.arange(first.rows, dtype=np.int64) * reach
    starts, stops = second.on_one_line(offsets)
    covered = np.concatenate([[0], np.cumsum(stops - starts)])

    def covered_before(pixels: Whole) -> Whole:
        # runs that start before the pixel count in full, but for what the last of them has beyond it
        index = np.searchsorted(starts, pixels)
        beyond = np.where(index > 0, stops[index - 1] - pixels, 0) if len(stops) else np.int64(0)
        return np.asarray(covered[index] - np.maximum(beyond, 0), dtype=np.int64)

    low, high = first.on_one_line(offsets)
    return _sums(first.row, covered_before(high) - covered_before(low), first.rows)


def _sums(row: Whole, values: Whole, rows: int) -> Whole:
    before = np.concatenate([[0], np.cumsum(values)])
    edges = np.searchsorted(row, np.arange(rows + 1))
    return np.asarray(np.diff(before[edges]), dtype=np.int64)


def dice(truth: Masks, predicted: Masks) -> npt.NDArray[np.float64]:
    """Each row's 2|A and B| / (|A| + |B|); NaN where both masks are empty."""
    total = truth.areas() + predicted.areas()
    twice = 2.0 * overlaps(truth, predicted)
    return np.divide(twice, total, out=np.full(truth.rows, np.nan), where=total > 0)


def encode(mask: npt.NDArray[np.bool_]) -> str:
    """The runs of a flat mask as `start length` pairs that count pixels from 1; an empty text for no pixel."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    return " ".join(map(str, np.column_stack([starts + 1, stops - starts]).ravel().tolist()))


def parse(
    cells: Sequence[Any] | pd.Series,
    sizes: npt.ArrayLike,
    *,
    column: str,
    strict: bool,
    row_numbers: npt.ArrayLike | None = None,
) -> Masks:
    """Read a column of `start length` pairs, pixels counted from 1; empty and blank cells are empty masks.

    Starts must ascend, starts and lengths be positive, runs not overlap inside the picture. What
    reaches beyond the picture is cut. Odd tokens are read as MLE-bench reads them: a lone start is
    an empty mask, and of three tokens the one length serves both starts.

    Args:
        cells: the texts; anything that is no text is refused.
        sizes: the number of pixels of each row's picture, or one number for all.
        column: the column's name, for messages.
        strict: refuse odd tokens and pixels beyond the picture.
        row_numbers: the cells' positions in the submission, where they have been put in another order.

    Raises:
        InvalidSubmission: a cell breaks these rules; the message says which row and how.
    """
    texts = list(cells)
    rows = len(texts)
    numbers = np.arange(rows) if row_numbers is None else np.asarray(row_numbers)

    def refuse(row: np.integer[Any] | int, why: str) -> InvalidSubmission:
        return InvalidSubmission(f"Row {numbers[row] + 1}: {column} {why}.")

    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise refuse(row, f"{shown(text)} is not text; expected pairs of start and length")
    try:
        tokens, row_of_token = _tokens(texts)
    except _NotWhole as error:
        raise refuse(error.row, f"{error.why}; expected whole numbers from 1 on") from error
    if (tokens <= 0).any():
        raise refuse(row_of_token[np.argmax(tokens <= 0)], "holds a number below 1")
    tokens, row_of_token, odd = _paired(tokens, row_of_token, rows)
    if odd.any() and strict:
        raise refuse(np.argmax(odd), "has a start without a length")
    if (odd & (np.bincount(row_of_token, minlength=rows) > 4)).any():
        bad = odd & (np.bincount(row_of_token, minlength=rows) > 4)
        raise refuse(np.argmax(bad), "has a start without a length")
    row, start = row_of_token[::2], tokens[::2] - 1
    stop = start + tokens[1::2]
    same = row[1:] == row[:-1]
    falling = same & (start[1:] < start[:-1])
    if falling.any():
        raise refuse(row[1:][np.argmax(falling)], "has runs out of order; starts must ascend")
    size = np.broadcast_to(np.asarray(sizes, dtype=np.int64), (rows,))[row]
    if strict and (stop > size).any():
        raise refuse(row[np.argmax(stop > size)], "has a run beyond the last pixel")
    overlap = same & (start[1:] < np.minimum(stop[:-1], size[1:]))
    if overlap.any():
        raise refuse(row[1:][np.argmax(overlap)], "has runs that overlap")
    inside = start < size
    return Masks(row[inside], start[inside], np.minimum(stop, size)[inside], rows)


class _NotWhole(ValueError):
    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row
        self.why = why


def _tokens(texts: list[str]) -> tuple[Whole, Whole]:
    """All numbers of all cells and the cell that each stands in."""
    joined = _END.join(texts)
    raw = np.frombuffer(joined.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    known = _BLANK[raw] | _DIGIT[raw] | (raw == 0)
    if not known.all():
        # Signs, underscores, other scripts' digits and blanks: what int() and split() take, in plain digits.
        return _tokens([text if _plain(text) else _in_plain_digits(row, text) for row, text in enumerate(texts)])
    digit = _DIGIT[raw]
    begins = np.flatnonzero(digit & ~np.concatenate([[False], digit[:-1]]))
    ends = np.concatenate([np.flatnonzero(raw == 0), [len(raw)]])
    cell = np.searchsorted(ends, begins)
    if not len(begins):
        return np.empty(0, dtype=np.int64), np.asarray(cell, dtype=np.int64)
    values = np.fromstring(joined.replace(_END, " "), dtype=np.int64, sep=" ")
    return np.minimum(values, _FAR), np.asarray(cell, dtype=np.int64)


def _plain(text: str) -> bool:
    return text.isascii() and bool((_BLANK | _DIGIT)[np.frombuffer(text.encode(), dtype=np.uint8)].all())


def _in_plain_digits(row: int, text: str) -> str:
    values = []
    for token in text.split():
        try:
            value = int(token)
        except ValueError as error:
            raise _NotWhole(row, f"holds {shown(token)}") from error
        if value < 1:
            raise _NotWhole(row, f"holds {shown(token)}")
        values.append(str(min(value, int(_FAR))))
    return " ".join(values)


def _paired(tokens: Whole, row: Whole, rows: int) -> tuple[Whole, Whole, npt.NDArray[np.bool_]]:
    """Odd cells made even: a lone number is left out, of three the second is put behind the third too."""
    counts = np.bincount(row, minlength=rows)
    odd = counts % 2 == 1
    if not odd.any():
        return tokens, row, odd
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    threes = firsts[counts == 3]
    lone = firsts[counts == 1]
    places = np.concatenate([threes + 3])
    tokens, row = np.insert(tokens, places, tokens[threes + 1]), np.insert(row, places, row[threes])
    shifted = lone + np.searchsorted(places, lone, side="right")
    return np.delete(tokens, shifted), np.delete(row, shifted), odd
