"""Types of columns as pandas found them up to version 3.0, where numbers that no type holds made a column text.

Later versions read 1e999 as infinity (all do so with -1e999) and whole numbers beyond 64 bits as
Python's, without leading zeros, and then keep "NA" as text. Digits of numbers are not for this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pandas as pd

_INFINITY = re.compile(r"\+?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.uint64).max


def restored(
    table: pd.DataFrame, na_words: Collection[str], as_text: Callable[[list[str]], pd.DataFrame]
) -> pd.DataFrame:
    """A table as read with today's types, with those columns as text that were text.

    Args:
        table: what was read.
        na_words: what stands for a missing cell.
        as_text: reads the table again, the named columns as text with missing cells.
    """
    doubtful = [
        str(name) for place, name in enumerate(table.columns) if _is_doubtful(table.iloc[:, place], na_words)
    ]
    if not doubtful:
        return table
    texts = as_text(doubtful)
    changed = {name: texts[name] for name in doubtful if not _is_infinite_by_name(table[name], texts[name])}
    return table.assign(**changed)


def _is_doubtful(column: pd.Series[Any], na_words: Collection[str]) -> bool:
    if column.dtype == np.float64:
        return bool((column.to_numpy() == np.inf).any())
    if column.dtype == object:
        return any(isinstance(cell, int) and not _LEAST <= cell <= _MOST for cell in column)
    if not isinstance(column.dtype, pd.StringDtype):
        return False
    return _keeps_missing_cells(column, na_words)


def _keeps_missing_cells(column: pd.Series[Any], na_words: Collection[str]) -> bool:
    # it happens only where nothing but whole numbers stands before the one that is too large
    first = next((cell for cell in column.array if isinstance(cell, str)), None)
    if first is None or first in na_words:
        return first is not None
    return bool(_WHOLE.fullmatch(first)) and bool(column.isin(na_words).any())


def _is_infinite_by_name(numbers: pd.Series[Any], texts: pd.Series[Any]) -> bool:
    if numbers.dtype != np.float64:
        return False
    infinite = texts[numbers.to_numpy() == np.inf]
    return all(_INFINITY.fullmatch(cell.strip()) for cell in infinite)
