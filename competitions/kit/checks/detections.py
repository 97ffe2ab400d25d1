"""Parse lists of objects in one cell, such as `label confidence x y` repeated; `matching` compares them."""

from __future__ import annotations

import io
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

Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]

_BLANK, _LINE = ord(" "), ord("\n")


@dataclass(frozen=True)
class Detections:
    """The objects of all rows, in the order of the cells.

    Attributes:
        row: the row that each object belongs to.
        numbers: one row per object with its numbers, in the order of its tokens, without the name.
        names: the name of each object, empty where objects have none.
        column: the column's name, for messages.
        row_numbers: the position of each row in the submission, for messages.
    """

    row: Positions
    numbers: Numbers
    names: npt.NDArray[np.object_]
    column: str
    row_numbers: Positions

    def refused(self, place: int | np.intp, why: str) -> InvalidSubmission:
        """Return an error that names the row of an object and what is wrong with it."""
        return InvalidSubmission(f"Row {self.row_numbers[self.row[place]] + 1}: {self.column} {why}.")


@dataclass(frozen=True)
class ObjectSyntax:
    """The syntax of objects in a cell.

    Attributes:
        tokens: the names of an object's tokens, in order.
        name: the index of the token that is its name; all others are numbers, as `float()` reads them.
        single_blanks: exactly one blank separates tokens, so that a surplus one makes an empty
            token; otherwise blanks of any kind and number separate them.
        missing_ok: a missing cell means no object.
        blank_ok: a cell of blanks alone means no object; always so without `single_blanks`.
    """

    tokens: tuple[str, ...]
    name: int | None
    single_blanks: bool
    missing_ok: bool
    blank_ok: bool = False

    @property
    def width(self) -> int:
        """The number of tokens per object."""
        return len(self.tokens)

    @property
    def expected(self) -> str:
        """What a cell should hold, for messages."""
        blanks = ", exactly one blank between tokens" if self.single_blanks else ""
        return f"'{' '.join(self.tokens)}' for each object{blanks}"


def predicted_and_true_masks(
    case: Grading, id_column: str, column: str, form: ObjectSyntax, *, true_form: ObjectSyntax | None = None
) -> tuple[Detections, Detections]:
    """Return the objects of a submission, and the true ones, both by the rows of the answers.

    Args:
        case: what is graded.
        id_column: the column by which rows are matched.
        column: the column with the objects, in the submission and in the answers.
        form: the syntax in the submission.
        true_form: the syntax in the answers, where it differs.
    """
    rows = paired_rows(case, id_column, column)
    with reading_answers():
        truth = parse(case.answers[column], true_form or form, column=column)
    return parse(case.submission[column].iloc[rows], form, column=column, row_numbers=rows), truth


def parse(
    cells: Sequence[Any] | pd.Series,
    form: ObjectSyntax,
    *,
    column: str,
    row_numbers: npt.ArrayLike | None = None,
) -> Detections:
    """Read a column of objects.

    Args:
        cells: the texts; a number is refused.
        form: the syntax of the objects.
        column: the column's name, for messages.
        row_numbers: the cells' positions in the submission, where they have been reordered.

    Raises:
        InvalidSubmission: a cell is not text, its tokens don't make whole objects, or one is not a number.
    """
    texts = pd.Series(cells, dtype=object).tolist()
    numbers = np.arange(len(texts)) if row_numbers is None else np.asarray(row_numbers, dtype=np.intp)
    filled = np.array([not _is_empty(text, form) for text in texts], dtype=bool)
    rows = np.flatnonzero(filled)
    held = [texts[row] for row in rows]
    read = _read_regular(held, form)
    if read is None:
        return _parse_token_by_token(held, rows, form, column, numbers)
    owner, values, names = read
    return Detections(rows[owner], values, names, column, numbers)


def _is_empty(text: Any, form: ObjectSyntax) -> bool:
    if isinstance(text, str):
        return (form.blank_ok or not form.single_blanks) and not text.strip()
    return form.missing_ok and bool(pd.isna(text))


def _read_regular(
    texts: list[Any], form: ObjectSyntax
) -> tuple[Positions, Numbers, npt.NDArray[np.object_]] | None:
    """Read cells of plain numbers separated by single blanks as one table with an object per line.

    Return None where anything is unusual; parsing token by token then finds the fault.
    """
    if not texts or not all(isinstance(text, str) for text in texts):
        return None
    joined = "\n".join(texts)
    if not joined.isascii() or joined.count("\n") != len(texts) - 1:
        return None
    raw = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).copy()
    if ((raw < _BLANK) & (raw != _LINE)).any():
        return None
    breaks = np.flatnonzero((raw == _BLANK) | (raw == _LINE))
    edges = np.concatenate([[-1], breaks, [len(raw)]])
    ends_of_cells = np.append(np.flatnonzero(raw[breaks] == _LINE), len(breaks))
    if (np.diff(edges) < 2).any() or ((ends_of_cells + 1) % form.width).any():
        return None
    raw[breaks[form.width - 1 :: form.width]] = _LINE
    fields = range(form.width)
    try:
        table = pd.read_csv(
            io.BytesIO(raw.tobytes()),
            sep=" ",
            header=None,
            names=list(fields),
            dtype={field: str if field == form.name else np.float64 for field in fields},
            quoting=3,
            na_filter=False,
        )
    except ValueError:
        return None
    counts = np.diff((ends_of_cells + 1) // form.width, prepend=0)
    values = table[[field for field in fields if field != form.name]].to_numpy(dtype=np.float64)
    names = np.empty(0, dtype=object) if form.name is None else table[form.name].to_numpy(dtype=object)
    return np.repeat(np.arange(len(texts)), counts), values, names


def _parse_token_by_token(
    texts: list[Any], rows: Positions, form: ObjectSyntax, column: str, row_numbers: Positions
) -> Detections:
    tokens: list[str] = []
    counts = np.zeros(len(texts), dtype=np.intp)
    for place, text in enumerate(texts):
        row = row_numbers[rows[place]]
        if not isinstance(text, str):
            raise InvalidCell(
                row, column, text, "is not text, but a single number or True/False", form.expected
            )
        parts = text.split(" ") if form.single_blanks else text.split()
        if len(parts) % form.width:
            count = "1 token" if len(parts) == 1 else f"{len(parts)} tokens"
            fault = f"has {count}, not a multiple of {form.width}"
            raise InvalidCell(row, column, text, fault, form.expected)
        tokens += parts
        counts[place] = len(parts) // form.width
    owner = rows[np.repeat(np.arange(len(texts)), counts)]
    fields = [tokens[field :: form.width] for field in range(form.width)]
    names = np.array([] if form.name is None else fields.pop(form.name), dtype=object)
    values = np.empty((len(owner), len(fields)))
    found_so_far = Detections(owner, values, names, column, row_numbers)
    for field, column_of_tokens in enumerate(fields):
        for place, token in enumerate(column_of_tokens):
            try:
                values[place, field] = float(token)
            except ValueError as error:
                raise found_so_far.refused(
                    place, f"holds {quoted(token)} where a number is expected"
                ) from error
    return found_so_far
