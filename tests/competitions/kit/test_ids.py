"""Ids are paired the same way whatever they are made of, however many there are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit.checks.ids import mismatch, pair_up

KINDS = {
    "numbers": st.integers(-5, 5),
    "texts": st.text("ab0", max_size=9),
    "wide texts": st.sampled_from(["x" * 30, "x" * 31, "é", "ü" * 9, ""]),
    "doubles": st.sampled_from([0.5, 1.0, -2.0]),
    "mixed": st.sampled_from([1, "1", "a", 2.5, True]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_pairing_is_that_of_two_stable_sorts(kind: str) -> None:
    @given(st.lists(KINDS[kind], min_size=1, max_size=9), st.lists(KINDS[kind], max_size=2), st.data())
    def holds(ids: list[object], replaced: list[object], data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(ids))))
        mixed_up = [ids[position] for position in order]
        mixed_up[: len(replaced)] = replaced[: len(ids)]
        found = pair_up(pd.Series(ids), pd.Series(mixed_up))
        expected = _slowly(ids, mixed_up)
        assert (None if found is None else found.tolist()) == expected

    holds()


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"mixed"}))  # where a text may spell a number
def test_what_does_not_match_is_foreign_surplus_or_lacking(kind: str) -> None:
    @given(st.lists(KINDS[kind], min_size=1, max_size=9), st.lists(KINDS[kind], min_size=1, max_size=9))
    def holds(wanted: list[object], given_ids: list[object]) -> None:
        foreign, surplus, lacking = mismatch(pd.Series(wanted), pd.Series(given_ids))
        known = [each in wanted for each in given_ids]
        assert foreign.tolist() == [row for row, is_known in enumerate(known) if not is_known]
        assert surplus.tolist() == [
            row
            for row, each in enumerate(given_ids)
            if known[row] and given_ids[: row + 1].count(each) > wanted.count(each)
        ]
        rare = [each for each in wanted if given_ids.count(each) < wanted.count(each)]
        assert lacking.tolist() == [each for at, each in enumerate(rare) if each not in rare[:at]]

    holds()


def test_a_word_among_numbers_makes_no_number_foreign() -> None:
    foreign, _, lacking = mismatch(pd.Series([7, 2**60 + 1, 9]), pd.Series(["7", str(2**60 + 1), "nobody"]))
    assert (foreign.tolist(), lacking.tolist()) == ([2], [9])


def _slowly(wanted: list[object], given_ids: list[object]) -> list[int] | None:
    left = list(enumerate(given_ids))
    found = []
    for value in wanted:
        place = next((pair for pair in left if pair[1] == value), None)
        if place is None:
            return None
        left.remove(place)
        found.append(place[0])
    return found


@pytest.mark.parametrize("make", [str, int, lambda number: f"{number:032x}.jpg"])
def test_many_ids_in_another_order_are_paired(make: object) -> None:
    ids = pd.Series([make(number) for number in range(20_000)])  # type: ignore[operator]  # a constructor
    order = np.random.RandomState(0).permutation(len(ids))
    found = pair_up(ids, ids.iloc[order].reset_index(drop=True))
    assert isinstance(found, np.ndarray)
    assert (order[found] == np.arange(len(ids))).all()
