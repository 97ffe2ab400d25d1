"""Finding for each wanted id the row that has it, fast for millions; messages are in `checks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Mismatch:
    """Why ids don't match: the first row with an unknown id, or one whose id stands there too often."""

    row: int
    is_foreign: bool


def pair_up(wanted: pd.Series, given: pd.Series) -> Positions | Mismatch:
    """For each wanted id the position of the same id among the given ones, or what does not match.

    Both must be equally long and hold no missing cell. Ids that stand more than once are paired in
    file order.
    """
    if _equal(wanted, given):
        return np.arange(len(wanted))
    return _paired(wanted.to_numpy(), given.to_numpy())


def _equal(wanted: pd.Series, given: pd.Series) -> bool:
    if given.dtype != object and given.dtype == wanted.dtype:  # compared as stored, text of Arrow included
        return bool((given.array == wanted.array).all())
    return bool(given.tolist() == wanted.tolist())


def _paired(wanted: npt.NDArray[Any], given: npt.NDArray[Any]) -> Positions | Mismatch:
    # Numbered by first appearance in one pass over both, so what only `given` holds comes after the rest.
    mixed = wanted.dtype == object or given.dtype == object
    both = np.concatenate([wanted.astype(object), given.astype(object)] if mixed else [wanted, given])
    codes = pd.factorize(both)[0]
    wanted_codes, given_codes = codes[: len(wanted)], codes[len(wanted) :]
    known = int(wanted_codes.max(initial=-1)) + 1
    foreign = given_codes >= known
    if foreign.any():
        return Mismatch(int(np.argmax(foreign)), is_foreign=True)
    surplus = np.bincount(given_codes, minlength=known) > np.bincount(wanted_codes, minlength=known)
    if surplus.any():
        return Mismatch(int(np.flatnonzero(surplus[given_codes])[-1]), is_foreign=False)
    positions = np.empty(len(wanted), dtype=np.intp)
    positions[np.argsort(wanted_codes, kind="stable")] = np.argsort(given_codes, kind="stable")
    return positions
