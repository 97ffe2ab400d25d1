"""Class numbers read as Python's `int` reads them; graders that demand whole numbers use `checks.whole_numbers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import checks
from competitions.task import InvalidSubmission

Labels = npt.NDArray[Any]

_LONGEST = np.iinfo(np.int64)


def truncated(table: pd.DataFrame, column: str) -> Labels:
    """A column of class numbers with fractions cut off; text counts where `int` can read it."""
    checks.columns_present(table, [column])
    cells: pd.Series[Any] = table[column]
    if cells.dtype.kind in "iub":
        return np.asarray(cells.to_numpy())
    if pd.api.types.is_numeric_dtype(cells):
        return np.trunc(checks.numbers(table, column))
    return _read(cells, int, "a class number")


def first_guesses(table: pd.DataFrame, column: str) -> Labels:
    """The first class number of each cell, which holds one number or several separated by blanks."""
    checks.columns_present(table, [column])
    cells: pd.Series[Any] = table[column]
    if cells.dtype.kind in "iub":
        return np.asarray(cells.to_numpy())
    return _read(cells, _first, "class numbers separated by blanks")


def _first(cell: Any) -> int:
    if isinstance(cell, str):
        return int(cell.split()[0])
    if isinstance(cell, int):  # a column that pandas read piece by piece may mix both
        return cell
    raise ValueError


def _read(cells: pd.Series[Any], reader: Callable[[Any], int], expected: str) -> Labels:
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
                f"Row {row}: {cells.name} {checks.shown(name)} cannot be read; expected {expected}."
            ) from None
    huge = any(not _LONGEST.min <= value <= _LONGEST.max for value in values)
    return np.array(values, dtype=object if huge else np.int64)[codes]
