"""Decimals as pandas read them by default up to version 3.0, for files whose prepared bytes depend on it.

That reader added up the first 17 digits in doubles, leading zeros included, and scaled the sum by a
power of ten, so that decimals of 16 digits and more often missed the nearest double by a last bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import tables

_DIGITS = 17
_EXACT = 15  # digits without an exponent always gave the nearest double, which a table has already
_PLAIN = r"\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?\s*"
_GREATEST = 308  # the largest power of ten that a double holds
_FAR = 10_000  # every power of ten beyond it gives the same

Numbers = npt.NDArray[np.float64]


def restored(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """A table read from a file, its columns of decimals as the former reader gave them."""
    decimals = [name for name in table.columns if pd.api.types.is_float_dtype(table[name])]
    if not decimals:
        return table
    texts = tables.read_csv(path, text=(), columns=decimals)
    changed = {name: _former(texts[name], table[name].to_numpy(dtype=np.float64)) for name in decimals}
    return table.assign(**changed)


def _former(texts: pd.Series[Any], nearest: Numbers) -> Numbers:
    values = nearest.copy()
    uncertain = (texts.str.len() > _EXACT) | texts.str.contains("e", case=False, regex=False)
    long = np.flatnonzero(uncertain.to_numpy() & np.isfinite(nearest))
    parts = texts.iloc[long].str.extract(f"^{_PLAIN}$").fillna("").to_numpy(dtype=object)
    digits = parts[:, 1] + parts[:, 2]
    plain = digits != ""
    long, parts, digits = long[plain], parts[plain], digits[plain]
    values[long] = _scaled(_summed(digits), _exponents(parts)) * np.where(parts[:, 0] == "-", -1.0, 1.0)
    return values


def _summed(digits: npt.NDArray[Any]) -> Numbers:
    """The first digits of each number, added up one after the other in doubles."""
    letters = digits.astype(f"U{_DIGITS}").view(np.uint32).reshape(len(digits), _DIGITS).astype(np.int64)
    sums = np.zeros(len(digits))
    for place in range(_DIGITS):
        column = letters[:, place]
        sums = np.where(column > 0, sums * 10.0 + (column - ord("0")), sums)
    return sums


def _exponents(parts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The power of ten by which the sum of digits is to be scaled."""
    whole, decimal = (np.array([len(cell) for cell in parts[:, column]], dtype=np.int64) for column in (1, 2))
    told = np.array([float(cell or 0) for cell in parts[:, 3]]).clip(-_FAR, _FAR).astype(np.int64)
    return told + np.maximum(whole - _DIGITS, 0) - np.minimum(decimal, np.maximum(_DIGITS - whole, 0))


def _scaled(sums: Numbers, exponents: npt.NDArray[np.int64]) -> Numbers:
    powers = np.array([float(f"1e{power}") for power in range(_GREATEST + 1)])
    far = np.clip(-_GREATEST - exponents, 0, _GREATEST)
    near = np.clip(np.abs(exponents), 0, _GREATEST)
    with np.errstate(over="ignore"):
        scaled: Numbers = np.where(exponents > 0, sums * powers[near], sums / powers[far] / powers[near])
    return scaled
