"""Masks as runs of pixels, a whole column at a time: reading, areas and overlaps; no mask is ever painted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit.checks import InvalidCell, columns_present, matched_rows, quoted, reading_answers
from competitions.task import Grading, InvalidSubmission

Whole = npt.NDArray[np.int64]

_FAR = np.int64(1) << 40  # beyond every picture; keeps start + length inside 64 bits
_BLANK = np.zeros(256, dtype=bool)
_BLANK[list(b" \t\n\v\f\r\x1c\x1d\x1e\x1f")] = True  # what str.split() takes for blanks in ASCII
_DIGIT = np.zeros(256, dtype=bool)
_DIGIT[list(b"0123456789")] = True
_PAIRS = "pairs of start and length separated by blanks"
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

    def head(self, rows: int) -> Masks:
        """The first so many masks."""
        runs = int(np.searchsorted(self.row, rows))
        return Masks(self.row[:runs], self.start[:runs], self.stop[:runs], rows)

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
    ratio = np.full(truth.rows, np.nan)
    np.divide(twice, total, out=ratio, where=total > 0)
    return ratio


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
    missing_ok: bool = False,
    row_numbers: npt.ArrayLike | None = None,
) -> Masks:
    """Read a column of `start length` pairs, pixels counted from 1; an empty text is an empty mask.

    Starts must ascend, starts and lengths be positive, runs not overlap inside the picture. What
    reaches beyond the picture is cut. Odd tokens are read as MLE-bench reads them: a lone start is
    an empty mask, and of three tokens the one length serves both starts.

    Args:
        cells: the texts; anything that is no text, such as a number, is refused.
        sizes: the number of pixels of each row's picture, or one number for all.
        column: the column's name, for messages.
        strict: refuse odd tokens and pixels beyond the picture.
        missing_ok: take a missing cell for an empty mask.
        row_numbers: the cells' positions in the submission, where they have been put in another order.

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
    """The masks of a submission, and the true ones, both in the order of the answers.

    Edition corrected is strict with the submission.

    Args:
        case: what is graded.
        id_column: matches the rows.
        predicted: the submission's column of masks.
        true: that of the answers, in which a missing cell is an empty mask.
        sizes: the number of pixels of each picture of the answers, or one number for all.
        missing_ok: take a missing cell of the submission for an empty mask.
        empty: a word that stands for an empty mask on both sides.
    """
    columns_present(case.submission, [id_column, predicted])
    rows = matched_rows(case.submission, case.answers, id_column)
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
    """All numbers of all cells, and the cell that each stands in."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise _Malformed(number, "is not text, but a single number or True/False")
    raw = _bytes(_END.join(texts))
    digit = raw - np.uint8(ord("0")) < 10  # what is below 0 comes around as a large number
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
    values: Whole = np.fromstring(blanked, dtype=np.int64, sep=" ")  # too large a number comes as the largest
    return np.minimum(values, _FAR), row


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _in_plain_digits(row: int, text: str) -> str:
    """The same numbers without the signs, underscores and other scripts' digits and blanks that int() takes."""
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
    """Cells of one number left out, those of three completed by their second number."""
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    threes = firsts[counts == 3]
    lone = np.zeros(len(tokens), dtype=bool)
    lone[firsts[counts == 1]] = True
    lone = np.insert(lone, threes + 3, False)
    tokens, row = np.insert(tokens, threes + 3, tokens[threes + 1]), np.insert(row, threes + 3, row[threes])
    return tokens[~lone], row[~lone]
