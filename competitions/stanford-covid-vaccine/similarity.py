"""Grouping texts that are alike, so that a split can keep them on one side; equal files are found by `duplicates`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

_ROWS = 1024


def groups(texts: Sequence[str], *, letters: int, share: float) -> npt.NDArray[np.intp]:
    """Number the texts so that alike ones, and all that a chain of alike ones links, share a number.

    Two texts are alike when of the different stretches of so many letters that the shorter of their
    lists holds, at least that share is in the other list too. Insertions and deletions shift stretches
    but don't change them. A text without any stretch is alike to equal texts only.
    """
    texts = list(texts)
    owners = np.repeat(np.arange(len(texts)), [max(len(text) - letters + 1, 0) for text in texts])
    stretches = [text[place : place + letters] for text in texts for place in range(len(text) - letters + 1)]
    codes = pd.factorize(np.array(stretches, dtype=object))[0]
    held = np.zeros((len(texts), int(codes.max(initial=-1)) + 1), dtype=np.float32)
    held[owners, codes] = 1
    sizes = held.sum(axis=1)
    number = np.asarray(pd.factorize(np.array(texts, dtype=object))[0], dtype=np.intp)
    left, right = [], []
    for start in range(0, len(texts), _ROWS):
        common = held[start : start + _ROWS] @ held.T
        least = share * np.minimum(sizes[start : start + _ROWS, None], sizes[None, :])
        rows, others = np.nonzero((common >= least) & (common > 0))
        left.append(rows + start)
        right.append(others)
    return _linked(
        number, np.concatenate([[], *left]).astype(np.intp), np.concatenate([[], *right]).astype(np.intp)
    )


def _linked(
    number: npt.NDArray[np.intp], left: npt.NDArray[np.intp], right: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Numbers that are equal wherever they were equal before or a pair links two rows, from 0 on."""
    while True:
        lowest = np.arange(int(number.max(initial=-1)) + 1)
        np.minimum.at(lowest, number[left], number[right])
        np.minimum.at(lowest, number[right], number[left])
        wider = lowest[number]
        if np.array_equal(wider, number):
            return np.asarray(pd.factorize(number)[0], dtype=np.intp)
        number = wider
