"""Metrics over predicted orders: how many pairs stand the wrong way round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]


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
