"""Names in cells are those that Python's own split finds, and numbers are equal where names are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from competitions.kit.checks import names, spellings

CELLS = st.lists(
    st.text("ab\u00e9\u00a0\u2003 \t\n\x1c\U0001f600", max_size=12)
    | st.sampled_from(["x" * 64, "x" * 65, "x" * 200 + " x"]),
    max_size=8,
)


def split(cells: list[str]) -> names.Names:
    return names.split(pd.Series(cells, dtype="str"))


def words_of(cells: list[str]) -> list[list[str]]:
    return [cell.split() for cell in cells]


@given(CELLS)
def test_cells_are_split_at_any_white_space(cells: list[str]) -> None:
    found = split(cells)
    assert found.sizes.tolist() == [len(words) for words in words_of(cells)]
    spelt = [name.decode() for name in found.spelt.bytes_of(np.arange(len(found.row)))]
    assert spelt == [word for words in words_of(cells) for word in words]
    assert found.place.tolist() == [place for words in words_of(cells) for place in range(len(words))]


@pytest.mark.parametrize("collide", [False, True])
@given(left=CELLS, right=CELLS)
def test_equal_names_and_no_others_have_equal_numbers(
    collide: bool, left: list[str], right: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(spellings, "mixed", lambda columns: np.zeros(len(columns[0]), dtype=np.uint64))
        numbers = np.concatenate(names.numbered(split(left), split(right))).tolist()
    spelt = [word for words in words_of([*left, *right]) for word in words]
    assert len(set(zip(spelt, numbers, strict=True))) == len(set(spelt)) == len(set(numbers))
