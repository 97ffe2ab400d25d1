"""Match a submission's ids with the expected ones, fast for millions of rows, and describe mismatches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Positions = npt.NDArray[np.intp]


def pair_up(wanted: pd.Series, given: pd.Series) -> Positions | None:
    """Return for each wanted id its position among the given ones; None where they do not match.

    Neither may contain a missing cell. Repeated ids are paired in file order.
    """
    if len(wanted) != len(given):
        return None
    if _equal(wanted, given):
        return np.arange(len(wanted))
    wanted_codes, given_codes = _coded(wanted.to_numpy(), given.to_numpy())
    known = int(wanted_codes.max(initial=-1)) + 1
    if (given_codes >= known).any() or (
        np.bincount(given_codes, minlength=known) > np.bincount(wanted_codes, minlength=known)
    ).any():
        return None
    positions = np.empty(len(wanted), dtype=np.intp)
    positions[np.argsort(wanted_codes, kind="stable")] = np.argsort(given_codes, kind="stable")
    return positions


def mismatch(wanted: pd.Series, given: pd.Series) -> tuple[Positions, Positions, npt.NDArray[Any]]:
    """Return how ids, none of which is missing, differ from the wanted ones.

    First the rows whose id is not wanted, then the rows by which an id has occurred more often than wanted, both
    ascending; then the wanted ids that occur less often than wanted, each once, in the wanted order.

    A column of numbers with a single word in it is read as text. Where numbers are wanted, its cells are
    converted to numbers again, so that only the word is foreign.
    """
    if pd.api.types.is_numeric_dtype(wanted) and not pd.api.types.is_numeric_dtype(given):
        numbers = {str(number): number for number in wanted.tolist()}
        given = given.map(lambda cell: numbers.get(str(cell), cell)).astype(object)
    wanted_codes, given_codes = _coded(wanted.to_numpy(), given.to_numpy())
    known = int(wanted_codes.max(initial=-1)) + 1
    foreign = given_codes >= known
    counts = np.bincount(wanted_codes, minlength=known)
    standing = np.bincount(given_codes[~foreign], minlength=known)
    times = pd.Series(given_codes).groupby(given_codes).cumcount().to_numpy()
    surplus = ~foreign & (times >= counts[np.where(foreign, 0, given_codes)] if known else ~foreign)
    lacking = (standing < counts)[wanted_codes]
    firsts = np.unique(wanted_codes[lacking], return_index=True)[1]
    return np.flatnonzero(foreign), np.flatnonzero(surplus), wanted.to_numpy()[lacking][np.sort(firsts)]


def _equal(wanted: pd.Series, given: pd.Series) -> bool:
    if given.dtype != object and given.dtype == wanted.dtype:  # compared as stored, text of Arrow included
        return bool((given.array == wanted.array).all())
    return bool(given.tolist() == wanted.tolist())


def _coded(wanted: npt.NDArray[Any], given: npt.NDArray[Any]) -> tuple[Positions, Positions]:
    """Number both sides by first appearance in one pass, so that ids only in `given` get the highest numbers."""
    mixed = wanted.dtype == object or given.dtype == object
    both = np.concatenate([wanted.astype(object), given.astype(object)] if mixed else [wanted, given])
    codes = pd.factorize(both)[0]
    return codes[: len(wanted)], codes[len(wanted) :]
