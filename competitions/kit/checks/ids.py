"""Finding for each wanted id the row that has it, fast for millions; what to tell when one has none is in `checks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit.checks import spellings
from competitions.kit.checks.spellings import Words

Positions = npt.NDArray[np.intp]

_MAX_BYTES = 1 << 30


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
    paired = _pair_unique(wanted, given)
    return _pair_any(wanted.to_numpy(), given.to_numpy()) if paired is None else paired


def _equal(wanted: pd.Series, given: pd.Series) -> bool:
    if given.dtype != object and given.dtype == wanted.dtype:  # compared as stored, text of Arrow included
        return bool((given.array == wanted.array).all())
    return bool(given.tolist() == wanted.tolist())


def _pair_unique(wanted: pd.Series, given: pd.Series) -> Positions | None:
    # Sorting whole numbers is several times as fast as hashing a million Python texts that lie all over memory.
    if wanted.dtype.kind in "iu" and wanted.dtype == given.dtype:
        return _pair_sorted(wanted.to_numpy(), given.to_numpy())
    words = _words(wanted, given)
    if words is None:
        return None
    positions = _pair_sorted(*(spellings.mixed(side) for side in words))
    if positions is None or any((one != other[positions]).any() for one, other in zip(*words, strict=True)):
        return None
    return positions


def _words(wanted: pd.Series, given: pd.Series) -> list[list[Words]] | None:
    """The bytes of ids that are texts, eight to a column; None where they are not, or would take too much memory."""
    if not all(isinstance(ids.dtype, pd.StringDtype) for ids in (wanted, given)):
        return None
    texts = [spellings.of_column(ids) for ids in (wanted, given)]
    longest = max(side.longest for side in texts)
    if longest * len(wanted) > _MAX_BYTES:
        return None
    return [side.words(max(longest, 1)) for side in texts]


def _pair_sorted(wanted: npt.NDArray[Any], given: npt.NDArray[Any]) -> Positions | None:
    by_wanted, by_given = _in_order(wanted), _in_order(given)
    ordered = wanted[by_wanted]
    if (ordered != given[by_given]).any() or (ordered[1:] == ordered[:-1]).any():
        return None
    positions = np.empty(len(wanted), dtype=np.intp)
    positions[by_wanted] = by_given
    return positions


def _in_order(numbers: npt.NDArray[Any]) -> Positions:
    # answers mostly are in order already
    return np.arange(len(numbers)) if (numbers[1:] >= numbers[:-1]).all() else np.argsort(numbers)


def _pair_any(wanted: npt.NDArray[Any], given: npt.NDArray[Any]) -> Positions | Mismatch:
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
