"""Lists of objects written into one cell, such as `label confidence x y` repeated; what they hit is `matching`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit.checks import shown
from competitions.task import InvalidSubmission

Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Detections:
    """The objects of all rows, in the order in which they are written.

    Attributes:
        row: the row that each object belongs to.
        fields: per place in an object its tokens, one for each object.
        column: the column's name, for messages.
        row_numbers: where each row stands in the submission, for messages.
    """

    row: Positions
    fields: tuple[list[str], ...]
    column: str
    row_numbers: Positions

    def numbers(self, field: int) -> Numbers:
        """One field of all objects as doubles, everything that `float()` takes.

        Raises:
            InvalidSubmission: a token is no number.
        """
        tokens = self.fields[field]
        try:
            return np.fromiter(map(float, tokens), dtype=np.float64, count=len(tokens))
        except ValueError as error:
            wrong = next(place for place, token in enumerate(tokens) if not _is_number(token))
            raise self.refused(wrong, f"holds {shown(tokens[wrong])} where a number is expected") from error

    def refused(self, place: int | np.intp, why: str) -> InvalidSubmission:
        """An error that names the row of an object and tells what is wrong with it."""
        return InvalidSubmission(f"Row {self.row_numbers[self.row[place]] + 1}: {self.column} {why}.")


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def parse(
    cells: Sequence[Any] | pd.Series,
    width: int,
    *,
    column: str,
    single_blanks: bool,
    missing_ok: bool,
    blank_ok: bool = False,
    row_numbers: npt.ArrayLike | None = None,
) -> Detections:
    """Read a column of objects of `width` tokens each.

    Args:
        cells: the texts; a number is refused.
        width: how many tokens an object has.
        column: the column's name, for messages.
        single_blanks: exactly one blank stands between tokens, so that a surplus one makes an empty
            token; otherwise blanks of any kind and number separate them.
        missing_ok: a missing cell holds no object.
        blank_ok: a cell of blanks alone holds no object; always so without `single_blanks`.
        row_numbers: the cells' positions in the submission, where they have been put in another order.

    Raises:
        InvalidSubmission: a cell is no text, or its tokens don't make whole objects.
    """
    texts = pd.Series(cells, dtype=object).tolist()
    numbers = np.arange(len(texts)) if row_numbers is None else np.asarray(row_numbers, dtype=np.intp)
    tokens: list[str] = []
    counts = np.zeros(len(texts), dtype=np.intp)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            if missing_ok and pd.isna(text):
                continue
            found = "is missing" if pd.isna(text) else f"{shown(text)} is not text"
            raise InvalidSubmission(
                f"Row {numbers[row] + 1}: {column} {found}; expected objects of {width} tokens each."
            )
        if blank_ok and not text.strip():
            continue
        parts = text.split(" ") if single_blanks else text.split()
        if len(parts) % width:
            hint = " (tokens are separated by exactly one blank)" if single_blanks else ""
            raise InvalidSubmission(
                f"Row {numbers[row] + 1}: {column} has {len(parts)} tokens, "
                f"expected a multiple of {width}{hint}."
            )
        tokens += parts
        counts[row] = len(parts) // width
    fields = tuple(tokens[place::width] for place in range(width))
    return Detections(np.repeat(np.arange(len(texts)), counts), fields, column, numbers)
