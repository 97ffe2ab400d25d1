"""Texts that share enough of their pieces are one group, whatever lies between them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.registry import get, load_task

task = load_task(get("stanford-covid-vaccine"))

BASE = "GGAAACGUUACGGCAUCCAUGGACUUAAGC"


def groups(texts: list[str], letters: int, share: float) -> np.ndarray:
    found: np.ndarray = task.similar(pd.Series(texts, dtype="str"), letters=letters, share=share)
    return found


def test_a_changed_and_a_shifted_text_are_alike() -> None:
    changed = BASE[:4] + "U" + BASE[5:]
    shifted = BASE[:10] + "CC" + BASE[10:]
    found = groups([BASE, "CUCUCUAUAUAGAGAGACACACUUGG", changed, shifted], letters=4, share=0.5)
    assert found.tolist() == [0, 1, 0, 0]


def test_a_chain_links_texts_that_are_not_alike_themselves() -> None:
    texts = ["abcdef", "cdefgh", "efghij", "zzzzzz"]
    assert groups(texts, letters=2, share=0.5).tolist() == [0, 0, 0, 1]
    assert groups([texts[0], texts[2]], letters=2, share=0.5).tolist() == [0, 1]


@given(
    st.lists(st.text("AC", min_size=3, max_size=8), min_size=1, max_size=30), st.sampled_from([0.3, 0.5, 1.0])
)
def test_groups_are_those_of_a_plain_search(texts: list[str], share: float) -> None:
    pieces = [{text[place : place + 3] for place in range(len(text) - 2)} for text in texts]
    group = list(range(len(texts)))
    for left, one in enumerate(pieces):
        for right, other in enumerate(pieces):
            common = len(one & other)
            if common and common >= share * min(len(one), len(other)):
                old, new = group[right], group[left]
                group = [new if number == old else number for number in group]
    found = groups(texts, letters=3, share=share)
    same = np.array(group)[:, None] == np.array(group)[None, :]
    assert np.array_equal(found[:, None] == found[None, :], same)
