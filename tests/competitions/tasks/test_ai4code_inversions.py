"""Inversions are the pairs that stand the wrong way round, counted one by one."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from competitions.registry import get, load_task

inversions = load_task(get("AI4Code")).cell_orders.inversions

SEQUENCES = st.lists(st.integers(0, 40).flatmap(lambda size: st.permutations(range(size))), max_size=8)


@given(SEQUENCES)
def test_inversions_are_those_of_all_pairs(sequences: list[list[int]]) -> None:
    ranks = np.array([rank for sequence in sequences for rank in sequence], dtype=np.int64)
    sizes = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    slowly = sum(first > second for each in sequences for first, second in itertools.combinations(each, 2))
    assert inversions(ranks, sizes) == slowly


def test_a_reversed_sequence_has_all_pairs_wrong() -> None:
    size = 100_000
    assert inversions(np.arange(size)[::-1], np.array([size])) == size * (size - 1) // 2
    assert inversions(np.arange(size), np.array([size])) == 0
