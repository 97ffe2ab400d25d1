"""Restore what pandas read before version 3.0: numbers beyond every dtype made a column text, and floats differed.

Later versions read 1e999 as infinity (all do so with -1e999) and integers beyond 64 bits as Python's,
without leading zeros, and then keep "NA" as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.raw import RawPath

_INFINITY = re.compile(r"\+?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.uint64).max


def with_former_types(
    table: pd.DataFrame, na_words: Collection[str], as_text: Callable[[list[str]], pd.DataFrame]
) -> pd.DataFrame:
    """Return a table with those columns as text that were text in former versions.

    Args:
        table: the table as read now.
        na_words: the words for a missing cell.
        as_text: reads the table again, the named columns as text with missing cells.
    """
    if table.empty:
        return table
    floats = table.select_dtypes(np.float64)
    largest = np.fmax.reduce(floats.to_numpy(), axis=0, initial=-np.inf)
    infinite = set(floats.columns[largest == np.inf])
    doubtful = [
        str(name)
        for place, (name, kind) in enumerate(zip(table.columns, table.dtypes, strict=True))
        if name in infinite or (kind.kind == "O" and _is_doubtful(table.iloc[:, place], na_words))
    ]
    if not doubtful:
        return table
    texts = as_text(doubtful)
    changed = {name: texts[name] for name in doubtful if not _is_infinite_by_name(table[name], texts[name])}
    return table.assign(**changed)


def _is_doubtful(column: pd.Series[Any], na_words: Collection[str]) -> bool:
    if column.dtype == object:
        return any(isinstance(cell, int) and not _LEAST <= cell <= _MOST for cell in column)
    if not isinstance(column.dtype, pd.StringDtype):
        return False
    return _newly_keeps_missing_cells(column, na_words)


def _newly_keeps_missing_cells(column: pd.Series[Any], na_words: Collection[str]) -> bool:
    # it happens only where nothing but integers precedes the one that is too large
    first = next((cell for cell in column.array if isinstance(cell, str)), None)
    if first is None or (first not in na_words and not _WHOLE.fullmatch(first)):
        return False
    missing = column.isin(na_words)
    # former versions kept them too where all others are integers, and none exceeds the unsigned ones
    return bool(missing.any()) and not all(
        isinstance(cell, str) and _WHOLE.fullmatch(cell) and int(cell) <= _MOST for cell in column[~missing]
    )


def _is_infinite_by_name(numbers: pd.Series[Any], texts: pd.Series[Any]) -> bool:
    if numbers.dtype != np.float64:
        return False
    infinite = texts[numbers.to_numpy() == np.inf]
    return all(_INFINITY.fullmatch(cell.strip()) for cell in infinite)


_DIGITS = 17
_EXACT = 15  # so many digits without an exponent always gave the nearest double, as now
_GREATEST = 308  # the largest power of ten that a double can hold
_FAR = 10_000  # every power of ten beyond it gives the same result
_ZERO, _NINE, _POINT, _MINUS = b"09.-"

Numbers = npt.NDArray[np.float64]
Powers = npt.NDArray[np.int64]


def with_former_floats(table: pd.DataFrame, path: RawPath) -> pd.DataFrame:
    """Return a table that was read from a file, with its floats as the former reader gave them."""
    decimals = [name for name in table.columns if pd.api.types.is_float_dtype(table[name])]
    if not decimals:
        return table
    texts = tables.read_csv(path, text=(), columns=decimals)
    changed = {name: _former(texts[name], table[name].to_numpy(dtype=np.float64)) for name in decimals}
    return table.assign(**changed)


def _former(texts: pd.Series[Any], nearest: Numbers) -> Numbers:
    with_power = texts.str.contains("e", case=False, regex=False).to_numpy()
    uncertain = with_power | (texts.str.len() > _EXACT).to_numpy()
    rows = np.flatnonzero(uncertain & np.isfinite(nearest))
    cells = texts.iloc[rows].to_numpy(dtype=object)
    powers = np.zeros(len(rows), dtype=np.int64)
    for place in np.flatnonzero(with_power[rows]):
        cells[place], _, power = cells[place].lower().partition("e")
        powers[place] = min(max(int(power), -_FAR), _FAR)
    values = nearest.copy()
    values[rows] = _read(cells.astype("S"), powers)
    return values


def _read(cells: npt.NDArray[np.bytes_], powers: Powers) -> Numbers:
    """Parse decimals, each scaled by a power of ten, all of them one digit at a time."""
    letters = cells.view(np.uint8).reshape(len(cells), cells.itemsize).T
    sums, exponents = np.zeros(len(cells)), powers.copy()
    taken = np.zeros(len(cells), dtype=np.int8)
    in_decimals = np.zeros(len(cells), dtype=np.bool_)
    for column in np.ascontiguousarray(letters):
        is_digit = (column >= _ZERO) & (column <= _NINE)
        counts = is_digit & (taken < _DIGITS)
        sums = np.where(counts, sums * 10.0 + (column.astype(np.float64) - _ZERO), sums)
        taken += counts
        exponents -= counts & in_decimals
        exponents += is_digit & ~counts & ~in_decimals
        in_decimals |= column == _POINT
    return np.where((letters == _MINUS).any(axis=0), -1.0, 1.0) * _scaled(sums, exponents)


def _scaled(sums: Numbers, exponents: Powers) -> Numbers:
    powers = np.array([float(f"1e{power}") for power in range(_GREATEST + 1)])
    far = np.clip(-_GREATEST - exponents, 0, _GREATEST)
    near = np.clip(np.abs(exponents), 0, _GREATEST)
    with np.errstate(over="ignore"):
        scaled: Numbers = np.where(exponents > 0, sums * powers[near], sums / powers[far] / powers[near])
    return scaled
