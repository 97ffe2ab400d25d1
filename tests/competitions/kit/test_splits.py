"""Splits are those of scikit-learn, on every version of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.kit import splits
from mlebench_console.foundation.problems import DataProblem


@pytest.mark.parametrize("n", [10, 13, 8693])
@pytest.mark.parametrize("test_size", [0.1, 0.19, 0.2, 3])
@pytest.mark.parametrize("seed", [0, 42])
def test_shuffled_rows_are_those_of_train_test_split(n: int, test_size: float, seed: int) -> None:
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(n), test_size=test_size, random_state=seed)
    found = splits.shuffled(n, test_size, seed)
    assert found.train.tolist() == train.tolist()
    assert found.test.tolist() == test.tolist()


def test_a_share_is_rounded_up_in_doubles() -> None:
    assert splits.held_out(990, 0.1) == 99
    assert splits.held_out(17500, 0.19) == 3325
    assert splits.held_out(11, 0.1) == 2


@pytest.mark.parametrize(("n", "test_size"), [(0, 0.1), (1, 0.1), (5, 5), (5, 6)])
def test_too_few_rows_are_a_problem_of_the_data(n: int, test_size: float) -> None:
    with pytest.raises(DataProblem, match="cannot be split"):
        splits.shuffled(n, test_size)


def test_groups_are_never_divided() -> None:
    groups = pd.Series([f"g{i // 3}" for i in range(60)])
    found = splits.shuffled_groups(groups, 0.25, 0)
    in_test = set(groups.iloc[found.test])
    assert len(in_test) == 5
    assert in_test.isdisjoint(groups.iloc[found.train])
    assert sorted([*found.train, *found.test]) == list(range(60))


def test_small_classes_give_their_last_member_to_test() -> None:
    labels = ["b", "a", "c", "a", "c", "c", *"ddddd"]
    found = splits.shuffled_per_class(labels, 0.2, 0)
    assert found.test[:2].tolist() == [3, 5]
    assert found.train[:4].tolist() == [0, 1, 2, 4]
    large = splits.shuffled(5, 0.2, 0)
    assert found.test[2:].tolist() == (large.test + 6).tolist()
    assert found.train[4:].tolist() == (large.train + 6).tolist()


def test_a_split_hands_out_rows_in_its_order() -> None:
    table = pd.DataFrame({"x": [10, 11, 12]})
    train, test = splits.Split(np.array([2, 0]), np.array([1])).of(table)
    assert train["x"].tolist() == [12, 10]
    assert test["x"].tolist() == [11]


def test_classes_can_be_shuffled_whatever_their_size() -> None:
    found = splits.shuffled_per_class(["a", "b", "a", "b", "b"], 0.2, 0, shuffle_from=1)
    assert found.test.tolist() == [
        [0, 2][splits.shuffled(2, 0.2).test[0]],
        [1, 3, 4][splits.shuffled(3, 0.2).test[0]],
    ]
    with pytest.raises(DataProblem, match="cannot be split"):
        splits.shuffled_per_class(["a", "b", "b"], 0.2, 0, shuffle_from=1)


def test_a_class_gives_no_more_members_to_test_than_allowed() -> None:
    labels = ["a"] * 60 + ["b"] * 10
    all_of, some = (splits.shuffled_per_class(labels, 0.2, 0, most=most) for most in (None, 3))
    assert len(all_of.test) == 14
    assert some.test.tolist() == [*all_of.test[:3], *all_of.test[12:]]
    assert sorted([*some.train, *some.test]) == list(range(70))
