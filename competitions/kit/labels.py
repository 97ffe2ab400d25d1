"""Cells that hold names of classes, one or a set of them separated by blanks; cells of numbers are in `checks`."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pandas as pd

from competitions.kit import checks
from competitions.kit.metrics.label_sets import LabelSets
from competitions.task import InvalidSubmission


def require_text(table: pd.DataFrame, column: str, *, all_missing_ok: bool = False) -> None:
    """A column that holds text as read: neither numbers alone nor True and False alone."""
    checks.columns_present(table, [column])
    if not pd.api.types.is_numeric_dtype(table[column]):
        return
    if not table[column].isna().all():
        raise InvalidSubmission(f"{column} holds numbers or True/False only; expected names as text.")
    if not all_missing_ok:
        raise InvalidSubmission(f"{column} is empty in every row; expected names as text.")


def coded_sets(truth: pd.Series, predicted: pd.Series) -> tuple[LabelSets, LabelSets]:
    """The sets of labels of two columns of blank-separated names, numbered alike.

    Repeats and surplus blanks don't matter; a cell that is missing or no text holds no label.
    """
    sides = [[_names(cell) for cell in column.tolist()] for column in (truth, predicted)]
    flat = np.array(list(chain.from_iterable(chain.from_iterable(sides))), dtype=object)
    codes = np.asarray(pd.factorize(flat)[0], dtype=np.intp)
    width = int(codes.max(initial=0)) + 1
    made = []
    for cells in sides:
        sizes = np.fromiter(map(len, cells), dtype=np.intp, count=len(cells))
        rows = np.repeat(np.arange(len(cells)), sizes)
        mine, codes = codes[: len(rows)], codes[len(rows) :]
        pairs = np.unique(rows * width + mine)
        made.append(LabelSets(pairs // width, pairs % width, len(cells)))
    return made[0], made[1]


def _names(cell: object) -> list[str]:
    return cell.split() if isinstance(cell, str) else []
