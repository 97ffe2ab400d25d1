"""Pairs of names that stand the wrong way round are counted one by one; names that don't belong are told by row."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.registry import get, load_task
from mlebench_console.competitions.task import InvalidSubmission

inversions = load_task(get("AI4Code")).inversions

ORDERS = st.lists(st.text(min_size=1, max_size=20), max_size=40, unique=True)


@given(ORDERS, st.data())
def test_inversions_are_those_of_all_pairs(wanted: list[str], data: st.DataObject) -> None:
    told = data.draw(st.permutations(wanted))
    pairs = itertools.combinations(map(wanted.index, told), 2)
    assert inversions(0, wanted, told) == sum(first > second for first, second in pairs)


def test_a_reversed_order_has_all_pairs_wrong() -> None:
    names = [str(number) for number in range(10_000)]
    assert inversions(0, names, names[::-1]) == 10_000 * 9_999 // 2
    assert inversions(0, names, names) == 0


@pytest.mark.parametrize("bad", ["b b", "a c", "a aa", "a " + "x" * 1_000, "b \u00e9"])
def test_foreign_and_repeated_names_are_told_by_row(bad: str) -> None:
    with pytest.raises(
        InvalidSubmission,
        match="Row 2: cell_order must hold the name of every cell of the notebook exactly once",
    ):
        inversions(1, ["a", "b"], bad.split(" "))


@pytest.mark.parametrize("bad", [[], ["a"], ["a", "b", "c"], ["a,b"]])
def test_the_number_of_names_is_checked(bad: list[str]) -> None:
    with pytest.raises(
        InvalidSubmission, match=r"Row 1: cell_order holds \d names?, but the notebook has 2 cells"
    ):
        inversions(0, ["a", "b"], bad)
