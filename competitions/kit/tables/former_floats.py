"""Decimals as pandas read them by default up to version 3.0, for files whose prepared bytes depend on it.

That reader added up the first 17 digits in doubles, leading zeros included, and scaled the sum by a
power of ten, so that decimals of 16 digits and more often missed the nearest double by a last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import tables
from competitions.raw import RawPath

_DIGITS = 17
_EXACT = 15  # digits without an exponent always gave the nearest double, which a table has already
_GREATEST = 308  # the largest power of ten that a double holds
_FAR = 10_000  # every power of ten beyond it gives the same
_ZERO, _NINE, _POINT, _MINUS = b"09.-"

Numbers = npt.NDArray[np.float64]
Powers = npt.NDArray[np.int64]


def restored(table: pd.DataFrame, path: RawPath) -> pd.DataFrame:
    """A table read from a file, its columns of decimals as the former reader gave them."""
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
    """The numbers that decimals stand for, each to be scaled by a power of ten, one digit of all at a time."""
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
