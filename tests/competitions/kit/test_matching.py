"""Pairs are made inside groups and granted first come, first served, as a plain loop would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit.metrics import matching

groups = st.lists(st.integers(0, 3), max_size=12).map(lambda values: np.array(values, dtype=np.intp))


@given(groups, groups, st.sampled_from([1, 3, 1 << 22]))
def test_pairs_are_all_of_the_same_group_in_order(first: np.ndarray, second: np.ndarray, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_BLOCK", block)
        blocks = [list(zip(*pair, strict=True)) for pair in matching.pairs(first, second)]
    made = [pair for pairs in blocks for pair in pairs]
    assert made == [(i, j) for i in range(len(first)) for j in range(len(second)) if first[i] == second[j]]
    owners = [{left for left, _ in pairs} for pairs in blocks]
    assert sum(map(len, owners)) == len(set().union(*owners)) if owners else not made


wishes = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10), max_size=4)


@given(wishes)
def test_greedy_grants_what_a_loop_grants(blocks: list[list[tuple[int, int]]]) -> None:
    # a member of the first side has its wishes in one block only, each of them once
    sorted_blocks = [
        sorted({(left + 6 * k, right) for left, right in block}) for k, block in enumerate(blocks)
    ]
    partner, taken = [-1] * 24, set()
    for left, right in (pair for block in sorted_blocks for pair in block):
        if partner[left] < 0 and right not in taken:
            partner[left] = right
            taken.add(right)
    arrays = [np.array(block, dtype=np.intp).reshape(-1, 2).T for block in sorted_blocks]
    assert matching.greedy([(a[0], a[1]) for a in arrays], 24, 6).tolist() == partner


def test_larger_overlaps_are_wanted_first_and_ties_go_as_asked() -> None:
    overlaps = {(0, 0): 0.5, (0, 1): 0.7, (0, 2): 0.7, (1, 0): 0.9, (1, 1): 0.3, (1, 2): 0.2}

    def overlap(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.array([overlaps[pair] for pair in zip(left.tolist(), right.tolist(), strict=True)])

    first, second = np.array([5, 5]), np.array([5, 5, 5])
    found = matching.overlapping(first, second, overlap, above=0.3)
    assert [side.tolist() for side in found] == [[0, 0, 0, 1], [1, 2, 0, 0], [0.7, 0.7, 0.5, 0.9]]
    later = matching.overlapping(first, second, overlap, above=0.3, later_wins=True)
    assert [side.tolist() for side in later[:2]] == [[0, 0, 0, 1], [2, 1, 0, 0]]


def test_codes_are_equal_for_equal_keys_on_all_sides() -> None:
    left = (np.array([5, 5, 7]), np.array(["a", "b", "a"], dtype=object))
    right = (np.array([7, 5, 5]), np.array(["a", "b", "c"], dtype=object))
    first, second = matching.codes(left, right)
    assert first[2] == second[0]
    assert first[1] == second[1]
    assert len({*first.tolist(), *second.tolist()}) == 4


def test_ranking_keeps_the_order_of_equal_confidences() -> None:
    group, confidence = np.array([1, 0, 1, 1, 0]), np.array([0.5, 0.1, 0.9, 0.5, np.nan])
    order = matching.ranked(group, confidence)
    assert order.tolist() == [1, 4, 2, 0, 3]
    assert matching.ranks(group[order]).tolist() == [0, 1, 0, 1, 2]
    assert matching.ranks(np.empty(0, dtype=np.intp)).tolist() == []
