"""Checks of a submission's form; each raises `InvalidSubmission` with what to mend, and says nothing of the answers.

Rows are counted as in a spreadsheet: the header is line 1, the first row of data is row 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit.checks.ids import Mismatch, pair_up
from competitions.task import InvalidSubmission
from foundation.problems import DataProblem

Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Spelling = Literal["refused", "pandas", "python"]

_SHOWN = 60
_BEYOND_WHOLE = 2.0**63
_BOOLEANS = [True, False, "True", "False", "TRUE", "FALSE", "true", "false"]  # as pandas spells them


def quoted(value: object) -> str:
    """A cell as it may stand in a message: quoted, control characters escaped, cut."""
    text = ascii(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


@contextmanager
def reading_answers() -> Iterator[None]:
    """What is refused inside is wrong with the answers; no submission is to blame, and no message mentions it.

    Raises:
        DataProblem: instead of `InvalidSubmission`.
    """
    try:
        yield
    except InvalidSubmission as error:
        raise DataProblem("The answers cannot be read", str(error), "Prepare the dataset again.") from error


def columns_present(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """All of these columns are there."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InvalidSubmission(
            f"Column {', '.join(map(repr, missing[:5]))} is missing; expected the columns "
            f"{', '.join(columns[:8])}{', ...' if len(columns) > 8 else ''}."
        )


def columns_exactly(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """These columns are there, in any order, and no others."""
    columns_present(table, columns)
    extra = [name for name in table.columns if name not in set(columns)]
    if extra:
        raise InvalidSubmission(
            f"Column {quoted(str(extra[0]))} is not expected; only {len(columns)} columns are."
        )


def row_count(table: pd.DataFrame, expected: int) -> None:
    """There are as many rows as asked for."""
    if len(table) != expected:
        raise InvalidSubmission(f"The submission has {len(table)} rows, expected {expected}.")


def matched_rows(
    submission: pd.DataFrame, answers: pd.DataFrame, column: str, *, answers_column: str | None = None
) -> Positions:
    """For each row of the answers the position of the submission's row with the same id.

    The row counts must be equal and each id must stand as often as in the answers; rows with the
    same id are paired in file order. A missing id matches nothing.
    """
    columns_present(submission, [column])
    row_count(submission, len(answers))
    given, wanted = submission[column], answers[answers_column or column]
    if given.isna().any():
        row = int(np.argmax(given.isna().to_numpy()))
        raise InvalidSubmission(f"Row {row + 1} has no {column}.")
    if wanted.isna().any():
        raise InvalidSubmission(f"The ids in {column} do not match those asked for.")
    paired = pair_up(wanted, given)
    if isinstance(paired, Mismatch):
        why = "is not among the ids asked for" if paired.is_foreign else "stands there more than once"
        raise InvalidSubmission(f"Row {paired.row + 1}: {column} {quoted(given.iloc[paired.row])} {why}.")
    return paired


def rows_asked_for(
    submission: pd.DataFrame, answers: pd.DataFrame, column: str, *, all_needed: bool = True
) -> Positions:
    """For each row of the submission the position of the answers' row with the same id, which is there once.

    Ids may be repeated; those of the answers must all be there unless not `all_needed`.
    """
    columns_present(submission, [column])
    rows = np.asarray(pd.Index(answers[column]).get_indexer(pd.Index(submission[column])), dtype=np.intp)
    if (rows < 0).any():
        row = int(np.argmax(rows < 0))
        raise InvalidSubmission(
            f"Row {row + 1}: {column} {quoted(submission[column].iloc[row])} is not among the ids asked for."
        )
    found = np.zeros(len(answers), dtype=np.bool_)
    found[rows] = True
    lacking = int(np.count_nonzero(~found))
    if all_needed and lacking:
        raise InvalidSubmission(f"The rows of {lacking} ids in {column} are missing.")
    return rows


def numbers(
    table: pd.DataFrame,
    columns: str | Sequence[str],
    *,
    low: float = -np.inf,
    high: float = np.inf,
    missing_ok: bool = False,
    infinite_ok: bool = False,
    ignored: Flags | None = None,
    spelt: Spelling = "pandas",
) -> Numbers:
    """The columns as doubles, one row per row (one-dimensional for a single name).

    Text, missing cells, infinities and values outside `low` to `high` are refused, each with the
    first row that has one. Rows flagged as `ignored` may hold anything and come as 0.

    Args:
        table: what holds the columns.
        columns: one name, or several.
        low: the least value that is taken.
        high: the greatest one.
        missing_ok: whether a cell may be missing.
        infinite_ok: whether a value may be infinite.
        ignored: which rows may hold anything.
        spelt: what becomes of numbers in a column that was read as text, because one of its cells is no
            number that a type holds: they are refused, taken where `pandas.to_numeric` takes them, or
            where `float` does, which takes more, such as "1_0".
    """
    if not isinstance(columns, str):
        columns_present(table, columns)
        read = partial(
            numbers,
            table,
            low=low,
            high=high,
            missing_ok=missing_ok,
            infinite_ok=infinite_ok,
            ignored=ignored,
            spelt=spelt,
        )
        return np.column_stack([read(name) for name in columns])
    name = columns
    columns_present(table, [name])
    column: pd.Series[Any] = table[name]
    label = name if name.isascii() and name.isprintable() else quoted(name)  # an agent may have made it up
    if not pd.api.types.is_numeric_dtype(column):
        converted = _converted(column, spelt)
        refused = (converted.isna() & column.notna()).to_numpy()
        if ignored is not None:
            refused = refused & ~ignored
        if refused.any():
            row = int(np.argmax(refused))
            raise InvalidSubmission(f"Row {row + 1}: {label} {quoted(column.iloc[row])} is not a number.")
        if not len(column):
            raise InvalidSubmission("The submission has no rows.")
        if spelt == "refused":
            raise _number_beyond_measure(column, converted)
        column = converted
    if pd.api.types.is_complex_dtype(column):
        raise InvalidSubmission(f"{label} holds complex numbers.")
    values: Numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if ignored is not None:
        values = np.where(ignored, 0.0, values)
    if not missing_ok and np.isnan(values).any():
        row = int(np.argmax(np.isnan(values)))
        raise InvalidSubmission(f"Row {row + 1}: {label} is missing; expected a number.")
    if not infinite_ok:
        _refuse(np.isinf(values), values, label, "is not finite; expected a number")
    bounds = f"from {low:g} to {high:g}" if np.isfinite(high) else f"of at least {low:g}"
    _refuse((values < low) | (values > high), values, label, f"is out of range; expected a number {bounds}")
    return values


def _converted(column: pd.Series[Any], spelt: Spelling) -> pd.Series[Any]:
    """A column of text as numbers, missing where it holds none."""
    converted = pd.to_numeric(column, errors="coerce").astype("float64")
    if spelt == "python":
        for row in np.flatnonzero((converted.isna() & column.notna()).to_numpy()).tolist():
            try:
                converted.iloc[row] = float(column.iloc[row])
            except (ValueError, TypeError):
                continue  # it stays missing
    return converted


def _number_beyond_measure(column: pd.Series[Any], converted: pd.Series[Any]) -> InvalidSubmission:
    row = int(np.argmax(converted.abs().to_numpy(na_value=-1.0)))
    return InvalidSubmission(
        f"Row {row + 1}: {column.name} {quoted(column.iloc[row])} is beyond what a column of numbers can hold."
    )


def _refuse(bad: npt.NDArray[np.bool_], values: Numbers, name: str, why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidSubmission(f"Row {row + 1}: {name} {values[row]:.15g} {why}.")


def sorted_rows(table: pd.DataFrame, column: str) -> Positions:
    """The positions of the rows sorted by a column, equal cells in file order, missing ones last.

    It is for graders that pair rows by rank without ever comparing ids; `matched_rows` is for the others.
    """
    columns_present(table, [column])
    cells = table[column].reset_index(drop=True)
    try:
        return cells.astype(object).sort_values(kind="stable").index.to_numpy(dtype=np.intp)
    except TypeError:
        raise InvalidSubmission(f"{column} holds both numbers and text, so rows cannot be sorted.") from None


def texts(table: pd.DataFrame, column: str, *, missing: str | None = None) -> list[str]:
    """A column of text; numbers and True or False are refused, and so are missing cells without a stand-in."""
    columns_present(table, [column])
    cells: list[Any] = table[column].tolist()
    for row, cell in enumerate(cells):
        if isinstance(cell, str):
            continue
        if not pd.isna(cell):
            raise InvalidSubmission(f"Row {row + 1}: {column} {quoted(cell)} is not text.")
        if missing is None:
            raise InvalidSubmission(f"Row {row + 1}: {column} is empty; expected text.")
        cells[row] = missing
    return cells


def whole_numbers(table: pd.DataFrame, column: str) -> Numbers:
    """A column of class numbers or booleans as doubles: numeric after reading, none missing, all whole."""
    columns_present(table, [column])
    if not pd.api.types.is_numeric_dtype(table[column]):
        if not len(table):
            raise InvalidSubmission(f"{column} holds none; expected labels as numbers or True/False.")
        row = _least_like_a_label(table[column])
        raise InvalidSubmission(
            f"Row {row + 1}: {column} {quoted(table[column].iloc[row])} is not a label; "
            "expected numbers or True/False."
        )
    values = numbers(table, column)
    _refuse(values != np.floor(values), values, column, "is not a whole number")
    if pd.api.types.is_float_dtype(table[column]):  # MLE-bench takes those beyond 64 bits for fractions
        _refuse(np.abs(values) >= _BEYOND_WHOLE, values, column, "is too large for a label")
    return values


def _least_like_a_label(cells: pd.Series) -> int:
    """The row of the cell that is no number, or of the largest where all are: a number that no type holds.

    Where most cells are booleans, they are what the others should have been.
    """
    sizes = pd.to_numeric(cells, errors="coerce").astype("float64").abs().to_numpy(na_value=np.inf)
    booleans = cells.isin(_BOOLEANS).to_numpy()
    if 2 * int(booleans.sum()) > len(cells):
        sizes = np.where(booleans, -1, sizes)
    return int(sizes.argmax())


def rows_sum_to_one(values: Numbers, *, tolerance: float = 1e-6 + 1e-5, decimals: int | None = None) -> None:
    """The probabilities of each row sum to one, within a tolerance or when rounded to some decimals.

    The default tolerance is that of numpy's isclose with atol 1e-6.
    """
    sums = values.sum(axis=1)
    off = ~(np.abs(sums - 1) <= tolerance) if decimals is None else np.round(sums, decimals) != 1
    if off.any():
        row = int(np.argmax(off))
        raise InvalidSubmission(f"Row {row + 1}: the probabilities sum to {sums[row]:.9g}, expected 1.")


def rescaled_rows(values: Numbers) -> Numbers:
    """Each row divided by its sum, as Kaggle's log loss does it; a row of zeros is refused."""
    sums: Numbers = values.sum(axis=1, keepdims=True)
    empty = ~(sums[:, 0] > 0)
    if empty.any():
        raise InvalidSubmission(f"Row {int(np.argmax(empty)) + 1}: no class has a probability above zero.")
    return values / sums


ClassNumbers = npt.NDArray[Any]

_LONGEST = np.iinfo(np.int64)


def truncated_class_numbers(table: pd.DataFrame, column: str) -> ClassNumbers:
    """A column of class numbers with fractions cut off; text counts where `int` can read it."""
    columns_present(table, [column])
    cells: pd.Series[Any] = table[column]
    if cells.dtype.kind in "iub":
        return np.asarray(cells.to_numpy())
    if pd.api.types.is_numeric_dtype(cells):
        return np.trunc(numbers(table, column))
    return _read_numbers(cells, int, "a class number")


def first_class_numbers(table: pd.DataFrame, column: str) -> ClassNumbers:
    """The first class number of each cell, which holds one number or several separated by blanks."""
    columns_present(table, [column])
    cells: pd.Series[Any] = table[column]
    if cells.dtype.kind in "iub":
        return np.asarray(cells.to_numpy())
    return _read_numbers(cells, _first_number, "class numbers separated by blanks")


def _first_number(cell: Any) -> int:
    if isinstance(cell, str):
        return int(cell.split()[0])
    if isinstance(cell, int):  # a column that pandas read piece by piece may mix both
        return cell
    raise ValueError


def _read_numbers(cells: pd.Series[Any], reader: Callable[[Any], int], expected: str) -> ClassNumbers:
    """Every different cell is read once."""
    if cells.isna().any():
        row = int(np.argmax(cells.isna().to_numpy())) + 1
        raise InvalidSubmission(f"Row {row}: {cells.name} is missing; expected {expected}.")
    codes, names = pd.factorize(cells.to_numpy(dtype=object), use_na_sentinel=False)
    values: list[int] = []
    for code, name in enumerate(names):
        try:
            values.append(reader(name))
        except (ValueError, TypeError, IndexError, OverflowError):
            row = int(np.argmax(codes == code)) + 1
            raise InvalidSubmission(
                f"Row {row}: {cells.name} {quoted(name)} cannot be read; expected {expected}."
            ) from None
    huge = any(not _LONGEST.min <= value <= _LONGEST.max for value in values)
    return np.array(values, dtype=object if huge else np.int64)[codes]
