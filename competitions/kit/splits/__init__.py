"""Split rows into train and test by position, exactly as every version of scikit-learn's splitter does.

`duplicates` finds rows that must stay on the same side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.problems import DataProblem

Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """Positions of the train and the test rows, each in the order in which they are written."""

    train: Positions
    test: Positions

    def of(self, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the train and the test rows of a table."""
        return table.iloc[self.train], table.iloc[self.test]


def held_out(n: int, test_size: float) -> int:
    """Return how many of `n` rows are test; an int `test_size` is a count, a float is a share, rounded up."""
    count = test_size if isinstance(test_size, int) else math.ceil(test_size * n)
    if not 0 < count < n:
        raise DataProblem(
            f"{n} rows cannot be split", f"{count} of them would be test rows", "Is the raw data complete?"
        )
    return count


def by_row(job: Preparation, n: int) -> Split:
    """Split `n` rows by the job's `test_size` and `seed`, as `shuffled` does."""
    return shuffled(n, job.number("test_size"), job.integer("seed"))


def by_group(job: Preparation, groups: Sequence[Any] | pd.Series | npt.NDArray[Any]) -> Split:
    """Split whole groups by the job's `test_size` and `seed`, as `shuffled_groups` does."""
    return shuffled_groups(groups, job.number("test_size"), job.integer("seed"))


def by_listed_group(job: Preparation, groups: Sequence[Any] | pd.Series) -> Split:
    """Split whole groups by the job's `test_size` and `seed`, as `listed_groups` does."""
    return listed_groups(groups, job.number("test_size"), job.integer("seed"))


def shuffled(n: int, test_size: float, seed: int = 0) -> Split:
    """Shuffle `n` rows and take the first `held_out` of them for test."""
    count = held_out(n, test_size)
    order = np.random.RandomState(seed).permutation(n)
    return Split(train=order[count:], test=order[:count])


def shuffled_groups(
    groups: Sequence[Any] | pd.Series | npt.NDArray[Any], test_size: float, seed: int = 0
) -> Split:
    """Split whole groups as `shuffled` splits rows; rows keep their order within each part."""
    codes, names = pd.factorize(pd.Series(groups), use_na_sentinel=False)
    chosen = np.zeros(len(names), dtype=bool)
    chosen[shuffled(len(names), test_size, seed).test] = True
    in_test = chosen[codes]
    return Split(train=np.flatnonzero(~in_test), test=np.flatnonzero(in_test))


def listed_groups(groups: Sequence[Any] | pd.Series, test_size: float, seed: int = 0) -> Split:
    """Split whole groups after sorting them, and order each part group by group as shuffled.

    Rows keep their order within a group; a row without a group is in neither part.
    """
    codes, names = pd.factorize(pd.Series(groups).to_numpy(), sort=True)
    split = shuffled(len(names), test_size, seed)
    return Split(train=_listed(codes, split.train), test=_listed(codes, split.test))


def _listed(codes: Positions, chosen: Positions) -> Positions:
    place = np.full(codes.max(initial=-1) + 2, -1)  # the last element is for code -1, no group
    place[chosen] = np.arange(len(chosen))
    places = place[codes]
    rows = np.flatnonzero(places >= 0)
    return rows[np.argsort(places[rows], kind="stable")]


def shuffled_per_class(
    labels: Sequence[Any] | pd.Series,
    test_size: float,
    seed: int = 0,
    *,
    shuffle_from: int = 5,
    most: int | None = None,
) -> Split:
    """Split each class separately, classes in order of first appearance.

    Args:
        labels: the class of each row.
        test_size: the share of each class that is test.
        seed: the seed with which every class is shuffled.
        shuffle_from: classes with at least this many members are split as `shuffled` does; in smaller ones
            the last member is test, and a single member is train.
        most: the most test members of a class; the others are train.
    """
    codes, names = pd.factorize(pd.Series(labels), use_na_sentinel=False)
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(names) + 1))
    parts: dict[int, tuple[Positions, Positions]] = {}  # by size, which alone decides how a class is split
    train: list[Positions] = []
    test: list[Positions] = []
    for first, end in itertools.pairwise(edges.tolist()):
        members = order[first:end]
        size = end - first
        if size not in parts:
            parts[size] = _class_parts(size, test_size, seed, shuffle_from, most)
        in_train, in_test = parts[size]
        train.append(members[in_train])
        test.append(members[in_test])
    return Split(train=np.concatenate(train), test=np.concatenate(test))


def _class_parts(
    size: int, test_size: float, seed: int, shuffle_from: int, most: int | None
) -> tuple[Positions, Positions]:
    if size >= shuffle_from:
        split = shuffled(size, test_size, seed)
        kept = split.test[most:] if most is not None else split.test[:0]
        return np.concatenate([split.train, kept]), split.test[:most]
    train = size - 1 if size > 1 else 1
    return np.arange(train), np.arange(train, size)
