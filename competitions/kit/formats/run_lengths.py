"""Run-length encoded masks, a whole column at a time: parsing, areas and overlaps, without drawing pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit.checks import (
    InvalidCell,
    paired_rows,
    quoted,
    reading_answers,
)
from mlebench_console.competitions.task import Grading, InvalidSubmission

Whole = npt.NDArray[np.int64]

_FAR = np.int64(1) << 40  # beyond every image; keeps start + length within 64 bits
_BLANK = np.zeros(256, dtype=bool)
_BLANK[list(b" \t\n\v\f\r\x1c\x1d\x1e\x1f")] = True  # the ASCII characters at which str.split() splits
_DIGIT = np.zeros(256, dtype=bool)
_DIGIT[list(b"0123456789")] = True
_PAIRS = "pairs of start and length separated by blanks"
_END = "\0"  # between cells; submissions with NUL bytes have been refused earlier


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
        """Return the number of pixels of each mask."""
        return _sums(self.row, self.stop - self.start, self.rows)

    def head(self, rows: int) -> Masks:
        """Return the first `rows` masks."""
        runs = int(np.searchsorted(self.row, rows))
        return Masks(self.row[:runs], self.start[:runs], self.stop[:runs], rows)

    def on_one_line(self, offsets: Whole) -> tuple[Whole, Whole]:
        """Return starts and stops shifted by each row's offset, so that all rows share one numbering."""
        shift = offsets[self.row]
        return self.start + shift, self.stop + shift


def overlaps(first: Masks, second: Masks) -> Whole:
    """Return for each row how many pixels its two masks have in common."""
    reach = max(int(first.stop.max(initial=0)), int(second.stop.max(initial=0)))
    offsets = np.arange(first.rows, dtype=np.int64) * reach
    starts, stops = second.on_one_line(offsets)
    covered = np.concatenate([[0], np.cumsum(stops - starts)])

    def covered_before(pixels: Whole) -> Whole:
        # runs that start before the pixel count in full, except the part of the last one that lies beyond it
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
    """Return each row's 2|A and B| / (|A| + |B|); NaN where both masks are empty."""
    total = truth.areas() + predicted.areas()
    twice = 2.0 * overlaps(truth, predicted)
    ratio = np.full(truth.rows, np.nan)
    np.divide(twice, total, out=ratio, where=total > 0)
    return ratio


def encode(mask: npt.NDArray[np.bool_]) -> str:
    """Return the runs of a flat mask as `start length` pairs, pixels counted from 1; empty for no pixel."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    return " ".join(map(str, np.column_stack([starts + 1, stops - starts]).ravel().tolist()))


def parse(
    cells: Sequence[Any] | pd.Series,
    sizes: npt.ArrayLike,
    *,
    column: str,
    strict: bool,
    missing_ok: bool = False,
    row_numbers: npt.ArrayLike | None = None,
) -> Masks:
    """Read a column of `start length` pairs, pixels counted from 1; an empty text is an empty mask.

    Starts must ascend, starts and lengths must be positive, and runs must not overlap inside the image. Runs
    are cut at the end of the image. An odd number of tokens is read as MLE-bench reads it: a lone start is
    an empty mask, and of three tokens the one length applies to both starts.

    Args:
        cells: the texts; anything else, such as a number, is refused.
        sizes: the number of pixels of each row's image, or one number for all.
        column: the column's name, for messages.
        strict: refuse odd numbers of tokens and pixels beyond the image.
        missing_ok: read a missing cell as an empty mask.
        row_numbers: the cells' positions in the submission, where they have been reordered.

    Raises:
        InvalidSubmission: a cell breaks these rules; the message says which row and how.
    """
    column_of_texts = pd.Series(cells, dtype=object)
    texts = (column_of_texts.fillna("") if missing_ok else column_of_texts).tolist()
    try:
        return _parsed(texts, np.broadcast_to(np.asarray(sizes, dtype=np.int64), (len(texts),)), strict)
    except _Malformed as error:
        row = error.row if row_numbers is None else np.asarray(row_numbers)[error.row]
        if not isinstance(texts[error.row], str):
            raise InvalidCell(row, column, texts[error.row], error.why, _PAIRS) from error
        raise InvalidSubmission(f"Row {row + 1}: {column} {error.why}.") from error


def predicted_and_true_masks(
    case: Grading,
    id_column: str,
    *,
    predicted: str,
    true: str,
    sizes: npt.ArrayLike,
    missing_ok: bool = False,
    empty: str = "",
) -> tuple[Masks, Masks]:
    """Return the masks of a submission, and the true ones, both in the order of the answers.

    Edition corrected parses the submission strictly.

    Args:
        case: what is graded.
        id_column: the column by which rows are matched.
        predicted: the submission's column of masks.
        true: the answers' column of masks, in which a missing cell is an empty mask.
        sizes: the number of pixels of each image of the answers, or one number for all.
        missing_ok: read a missing cell of the submission as an empty mask.
        empty: a word that means an empty mask on both sides.
    """
    rows = paired_rows(case, id_column, predicted)
    given = case.submission[predicted].iloc[rows].replace(empty, "")
    with reading_answers():
        wanted = case.answers[true].replace(empty, "")
        truth = parse(wanted, sizes, column=true, strict=False, missing_ok=True)
    claims = parse(
        given, sizes, column=predicted, strict=case.corrected, missing_ok=missing_ok, row_numbers=rows
    )
    return claims, truth


class _Malformed(ValueError):
    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row
        self.why = why


def _parsed(texts: list[Any], sizes: Whole, strict: bool) -> Masks:
    tokens, row = _tokens(texts)
    _refuse(tokens < 1, row, "holds a number below 1; starts and lengths count from 1")
    counts = np.bincount(row, minlength=len(texts))
    odd = counts % 2 == 1
    if odd.any():
        _refuse(odd & (strict | (counts > 3)), np.arange(len(texts)), "has a start without a length")
        tokens, row = _paired(tokens, row, counts)
    row, start = row[::2], tokens[::2] - 1
    stop, size = start + tokens[1::2], sizes[row]
    same = row[1:] == row[:-1]
    _refuse(same & (start[1:] < start[:-1]), row[1:], "has runs out of order; starts must ascend")
    if strict:
        _refuse(stop > size, row, "has a run that reaches beyond the last pixel")
    _refuse(same & (start[1:] < np.minimum(stop[:-1], size[1:])), row[1:], "has runs that overlap")
    inside = start < size
    return Masks(row[inside], start[inside], np.minimum(stop, size)[inside], len(texts))


def _refuse(bad: npt.NDArray[np.bool_], row: Whole, why: str) -> None:
    if bad.any():
        raise _Malformed(int(row[np.argmax(bad)]), why)


def _tokens(texts: list[Any]) -> tuple[Whole, Whole]:
    """Return all numbers of all cells, and the index of each one's cell."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise _Malformed(number, "is not text, but a single number or True/False")
    raw = _bytes(_END.join(texts))
    digit = raw - np.uint8(ord("0")) < 10  # values below 0 wrap around to large ones
    end = raw == ord(_END)
    other = raw[~(digit | end | (raw == ord(" ")))]
    if not _BLANK[other].all():
        return _tokens([_in_plain_digits(number, text) for number, text in enumerate(texts)])
    begins = np.flatnonzero(digit & ~np.concatenate([[False], digit[:-1]]))
    before = np.searchsorted(begins, np.append(np.flatnonzero(end), len(raw)))
    row = np.repeat(np.arange(len(texts)), np.diff(before, prepend=0)[: len(texts)])
    if not len(begins):
        return np.empty(0, dtype=np.int64), row
    blanked = np.where(digit, raw, np.uint8(ord(" "))).tobytes()
    values: Whole = np.fromstring(blanked, dtype=np.int64, sep=" ")  # too large a number becomes the largest
    return np.minimum(values, _FAR), row


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _in_plain_digits(row: int, text: str) -> str:
    """Rewrite numbers without the signs, underscores and non-ASCII digits and blanks that int() accepts."""
    raw = _bytes(text)
    if (_DIGIT | _BLANK)[raw].all():
        return text
    values = []
    for token in text.split():
        try:
            value = int(token)
        except ValueError as error:
            raise _Malformed(row, f"holds {quoted(token)}; expected whole numbers") from error
        if value < 1:
            raise _Malformed(row, f"holds {quoted(token)}; starts and lengths count from 1")
        values.append(str(min(value, int(_FAR))))
    return " ".join(values)


def _paired(tokens: Whole, row: Whole, counts: Whole) -> tuple[Whole, Whole]:
    """Leave out cells of one number, and complete those of three by repeating their second number."""
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    threes = firsts[counts == 3]
    lone = np.zeros(len(tokens), dtype=bool)
    lone[firsts[counts == 1]] = True
    lone = np.insert(lone, threes + 3, False)
    tokens, row = np.insert(tokens, threes + 3, tokens[threes + 1]), np.insert(row, threes + 3, row[threes])
    return tokens[~lone], row[~lone]
