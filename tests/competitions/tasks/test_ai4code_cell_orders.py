"""Orders of names are compared name by name, and names that don't belong are told by row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from competitions.registry import get, load_task
from competitions.task import InvalidSubmission

cell_orders = load_task(get("AI4Code")).cell_orders

NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=20),
    min_size=1,
    max_size=12,
    unique=True,
)
BLANKS = st.sampled_from([" ", "  ", "\t", "\n", "\u00a0", " \u2003 "])


def ranks(truth: list[str], given: list[str]) -> tuple[list[int], list[int]]:
    found, sizes = cell_orders.ranks(
        pd.Series(truth, dtype="str"), pd.Series(given, dtype="str"), "order", np.arange(len(truth))
    )
    return found.tolist(), sizes.tolist()


@given(st.lists(NAMES, min_size=1, max_size=5), st.data())
def test_ranks_are_the_places_in_the_true_order(rows: list[list[str]], data: st.DataObject) -> None:
    told = [data.draw(st.permutations(row)) for row in rows]
    blank = data.draw(BLANKS)
    found, sizes = ranks([" ".join(row) for row in rows], [blank.join(row) + blank for row in told])
    assert sizes == [len(row) for row in rows]
    assert found == [row.index(name) for row, names in zip(rows, told, strict=True) for name in names]


@pytest.mark.parametrize("bad", ["b b", "a c", "a aa", "a " + "x" * 1_000, "b \u00e9"])
def test_foreign_and_repeated_names_are_told_by_row(bad: str) -> None:
    with pytest.raises(InvalidSubmission, match="Row 2: order must hold every name of its own exactly once"):
        ranks(["c d", "a b", "e"], ["d c", bad, "e"])


def test_names_of_another_row_don_t_count() -> None:
    with pytest.raises(InvalidSubmission, match="Row 1"):
        ranks(["a b", "c d"], ["a c", "b d"])


@pytest.mark.parametrize("bad", ["", "a", "a b c", "ab", "a,b"])
def test_the_number_of_names_is_checked(bad: str) -> None:
    with pytest.raises(InvalidSubmission, match=r"Row 1: order holds \d names, expected 2"):
        ranks(["a b", "c"], [bad, "c"])
