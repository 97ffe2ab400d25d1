"""Of which type a column of a large table is, by the types that pandas finds in its pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

PLAIN = {"int64", "float64", "str"}
"""The kinds that are types of whole columns if all pieces are of the same one."""

_EMPTY = "empty"


def kind_of(column: pd.Series[Any]) -> str:
    """The type of a piece of a column, or why it tells little of the whole."""
    if column.dtype != np.float64:
        return str(column.dtype)
    if column.isna().all():
        return _EMPTY
    # what no double holds made the column text once, as `former_types` has it
    return "infinite" if (column.to_numpy() == np.inf).any() else "float64"


def common(kinds: set[str]) -> str | None:
    """The type that pandas finds for a whole column whose pieces have these; None if that depends on the pieces."""
    some = kinds - {_EMPTY}
    if some <= {"int64", "float64"}:
        return "int64" if kinds == {"int64"} else "float64"
    return "str" if some == {"str"} else None
