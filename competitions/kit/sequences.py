"""Cells that hold an order of names, separated by blanks: the true and a given order of the same names compared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import matching, names, spellings
from competitions.kit.names import Names
from competitions.task import InvalidSubmission

Positions = npt.NDArray[np.intp]


def ranks(truth: pd.Series, given: pd.Series, column: str, rows: Positions) -> tuple[Positions, Positions]:
    """The true rank of each given name, row after row, and the number of names of each row.

    Args:
        truth: the true orders, in which no name stands twice.
        given: for each of them an order of the same names.
        column: what the messages call the column.
        rows: the submission's row that each given order is from.
    """
    wanted, told = names.split(truth), names.split(given)
    unequal = wanted.sizes != told.sizes
    if unequal.any():
        row = int(np.argmax(unequal))
        raise InvalidSubmission(
            f"Row {rows[row] + 1}: {column} holds {told.sizes[row]} names, expected {wanted.sizes[row]}."
        )
    longest = max(wanted.spelt.longest, 1)
    _refuse(told.spelt.lengths > longest, told, column, rows)
    columns = [[side.row.astype(np.uint64), *side.spelt.words(longest)] for side in (wanted, told)]
    orders = [np.argsort(spellings.mixed(side)) for side in columns]
    if any((one[orders[0]] != two[orders[1]]).any() for one, two in zip(*columns, strict=True)):
        true_codes, codes = matching.codes(*map(tuple, columns))
        known = np.bincount(true_codes, minlength=int(codes.max()) + 1)
        _refuse(known[codes] != np.bincount(codes)[codes], told, column, rows)
        orders = [np.argsort(true_codes), np.argsort(codes)]
    found = np.empty(len(told.row), dtype=np.intp)
    found[orders[1]] = wanted.place[orders[0]]
    return found, wanted.sizes


def _refuse(strange: npt.NDArray[np.bool_], told: Names, column: str, rows: Positions) -> None:
    if strange.any():
        row = rows[told.row[int(np.argmax(strange))]] + 1
        raise InvalidSubmission(
            f"Row {row}: {column} must hold every name of its own exactly once, and no other."
        )
