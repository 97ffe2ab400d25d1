"""Cells that hold an order of names, separated by blanks: true ranks of the names given, and inversions of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.task import InvalidSubmission

Positions = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]


def ranks(truth: pd.Series, given: pd.Series, column: str, rows: Positions) -> tuple[Positions, Positions]:
    """The true rank of each given name, row after row, and the number of names of each row.

    Args:
        truth: the true orders, in which no name stands twice.
        given: for each of them an order of the same names.
        column: what the messages call the column.
        rows: the submission's row that each given order is from.
    """
    found: list[int] = []
    sizes: list[int] = []
    for row, wanted, names in zip(
        rows, map(_names, truth.tolist()), map(_names, given.tolist()), strict=True
    ):
        if len(wanted) != len(names):
            raise InvalidSubmission(
                f"Row {row + 1}: {column} holds {len(names)} names, expected {len(wanted)}."
            )
        places = {name: place for place, name in enumerate(wanted)}
        if places.keys() != set(names):
            raise InvalidSubmission(
                f"Row {row + 1}: {column} must hold every name of its own exactly once, and no other."
            )
        found += map(places.__getitem__, names)
        sizes.append(len(wanted))
    return np.array(found, dtype=np.intp), np.array(sizes, dtype=np.intp)


def _names(cell: Any) -> list[str]:
    return [] if pd.isna(cell) else str(cell).split()


def inversions(ranks: Counts, sizes: Counts) -> int:
    """The pairs inside each sequence whose first member has the higher rank, over all sequences.

    The members of a sequence have the ranks from 0 on, each once.

    Args:
        ranks: the true rank of each member in the order predicted, sequence after sequence.
        sizes: how many members each sequence has.
    """
    bits = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    member_bits = np.repeat(bits, sizes)
    return sum(
        _inversions(ranks[member_bits == count], sizes[bits == count], count)
        for count in np.unique(bits).tolist()
    )


def _inversions(ranks: Counts, sizes: Counts, bits: int) -> int:
    """The inversions of sequences whose ranks have so many bits.

    Of two ranks that agree in all higher bits those are the wrong way round of which the first has
    the next bit and the second has not: one pass over everything per bit.
    """
    keys = np.repeat(np.arange(len(sizes)) << bits, sizes) | ranks
    if keys.max(initial=0) <= np.iinfo(np.int32).max:
        keys = keys.astype(np.int32)  # half the memory to go through
    places = np.arange(len(keys), dtype=keys.dtype)
    total = 0
    for bit in range(bits - 1, -1, -1):
        # Keys stand sorted by their higher bits, and in the predicted order where these are equal.
        higher = keys >> (bit + 1)
        starts = np.flatnonzero(np.diff(higher, prepend=-1))
        lengths = np.diff(np.append(starts, len(keys)))
        has_bit = (keys >> bit & 1).astype(bool)
        counted = np.cumsum(has_bit, dtype=keys.dtype)
        earlier = counted[starts] - has_bit[starts]
        ahead = counted - np.repeat(earlier, lengths)  # members of the same run with the bit, up to here
        total += int(ahead[~has_bit].sum(dtype=np.int64))
        zeros = lengths - (np.append(earlier[1:], counted[-1:]) - earlier)
        # without the bit a key moves up by those ahead that have it, with it behind all that have not
        target = np.where(has_bit, np.repeat(starts + zeros, lengths) + ahead - 1, places - ahead)
        moved = np.empty_like(keys)
        moved[target] = keys
        keys = moved
    return total
