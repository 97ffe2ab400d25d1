"""Checks of cells with class names, one or several separated by blanks; those of numbers are in `checks`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks
from mlebench_console.competitions.kit.metrics.label_sets import LabelSets
from mlebench_console.competitions.task import InvalidSubmission

Positions = npt.NDArray[np.intp]


def require_text(table: pd.DataFrame, column: str, *, all_missing_ok: bool = False) -> None:
    """Refuse a column that was read as numbers only, or as True and False only, instead of text."""
    checks.columns_present(table, [column])
    cells = table[column].dropna()
    # with missing cells among them True and False are objects
    if not pd.api.types.is_numeric_dtype(table[column]) and not (cells.dtype == object and _are_bools(cells)):
        return
    if len(cells):
        row = np.argmax(table[column].notna().to_numpy())
        fault = "is no name: the column holds numbers or True/False only"
        raise checks.InvalidCell(row, column, cells.iloc[0], fault, "names as text")
    if not all_missing_ok:
        raise InvalidSubmission(f"{column} is empty in every row; expected names as text.")


def _are_bools(cells: pd.Series) -> bool:
    return all(isinstance(cell, bool) for cell in cells)


def coded_sets(truth: pd.Series, predicted: pd.Series) -> tuple[LabelSets, LabelSets]:
    """Return the sets of labels in two columns of blank-separated names, with shared numbers for the names.

    Repeats and surplus blanks don't matter; a cell that is missing or not text has no label.
    """
    sides = [[cell if isinstance(cell, str) else "" for cell in side.tolist()] for side in (truth, predicted)]
    # split twice, because millions of lists alive at the same time slow the garbage collector
    sizes = [np.fromiter((len(cell.split()) for cell in side), dtype=np.intp) for side in sides]
    names = [name for side in sides for cell in side for name in cell.split()]
    codes, found = pd.factorize(np.array(names, dtype=object))
    one, other = (np.repeat(np.arange(len(side)), side) for side in sizes)
    width = max(len(found), 1)
    return (
        _sets(one, codes[: len(one)], width, len(truth)),
        _sets(other, codes[len(one) :], width, len(predicted)),
    )


def _sets(row: Positions, codes: Positions, width: int, rows: int) -> LabelSets:
    # rows come in order and keep their places; np.unique took ten times as long on 85,000 pairs
    first = row * width
    pairs = np.sort(first + codes)
    kept = np.diff(pairs, prepend=-1) > 0
    return LabelSets(row[kept], (pairs - first)[kept], rows)
