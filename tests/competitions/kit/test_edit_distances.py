"""Edit distances of whole columns are those of the classical table, cell by cell."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit.metrics import texts


def classical(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, wanted in enumerate(left, start=1):
        diagonal, row[0] = row[0], i
        for j, found in enumerate(right, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (wanted != found))
    return row[-1]


def test_known_distances() -> None:
    truth = ["kitten", "", "abc", "same", "flaw", "äöü", "a\U0001f600b"]
    predicted = ["sitting", "abc", "", "same", "lawn", "aou", "a\U0001f601b"]
    assert texts.edit_distances(truth, predicted).tolist() == [3, 3, 3, 0, 2, 3, 1]


TEXTS = st.lists(st.text("ab c\U0001f600\ud800", max_size=12), max_size=20)


@given(TEXTS, st.randoms(use_true_random=False))
def test_short_texts_agree_with_the_table(truth: list[str], chance: random.Random) -> None:
    predicted = chance.sample(truth, len(truth))
    expected = [classical(left, right) for left, right in zip(truth, predicted, strict=True)]
    assert texts.edit_distances(truth, predicted).tolist() == expected


@pytest.mark.parametrize("size", [63, 64, 65, 127, 128, 129, 200])
def test_texts_of_several_blocks_agree_with_the_table(size: int) -> None:
    chance = random.Random(size)
    truth = ["".join(chance.choices("abcd", k=size)) for _ in range(8)]
    predicted = ["".join(chance.choices("abcd", k=size + step)) for step in range(-4, 4)]
    expected = [classical(left, right) for left, right in zip(truth, predicted, strict=True)]
    assert texts.edit_distances(truth, predicted).tolist() == expected


def test_no_rows_have_no_distances() -> None:
    assert texts.edit_distances([], []).tolist() == []


def test_columns_of_unequal_length_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="row by row"):
        texts.edit_distances(["a"], [])


def test_lists_of_numbers_are_compared_number_by_number() -> None:
    truth = [[12, 1, 2], [1, 2], [], [70_000_000, -3], [1]]
    predicted = [[1, 2, 1, 2], [21, 1], [5, 6], [70_000_000, -3], []]
    assert texts.sequence_distances(truth, predicted).tolist() == [2, 2, 2, 0, 1]


def test_more_numbers_than_there_are_characters_can_be_predicted() -> None:
    predicted = [list(range(start, start + 100)) for start in range(0, 1_200_000, 100)]
    distances = texts.sequence_distances([[5]] * len(predicted), predicted)
    assert (distances[0], set(distances[1:].tolist())) == (99, {100})
