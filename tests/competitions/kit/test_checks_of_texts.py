"""Columns of text, rows paired by rank, and rows that a metric does not look at."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.kit import checks
from mlebench_console.competitions.task import InvalidSubmission


def column(*values: object) -> pd.DataFrame:
    return pd.DataFrame({"x": list(values)})


def test_rows_are_sorted_with_equal_cells_in_file_order_and_missing_ones_last() -> None:
    assert checks.sorted_rows(column("b", None, "a", "b"), "x").tolist() == [2, 0, 3, 1]
    assert checks.sorted_rows(column(3, 1, math.nan, 2), "x").tolist() == [1, 3, 0, 2]


def test_numbers_and_text_have_no_order() -> None:
    with pytest.raises(InvalidSubmission, match="both numbers and text"):
        checks.sorted_rows(column(1, "a"), "x")


def test_missing_texts_get_a_stand_in_or_are_refused() -> None:
    assert checks.texts(column("a", None, ""), "x", missing="") == ["a", "", ""]
    assert checks.texts(column(math.nan, math.nan), "x", missing="") == ["", ""]
    with pytest.raises(InvalidSubmission, match="Row 2: x is empty"):
        checks.texts(column("a", None), "x")


@pytest.mark.parametrize("value", [1, 1.5, True])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidSubmission, match=r"Row 1: x .* is not text"):
        checks.texts(column(value, value), "x", missing="")


def test_ignored_rows_may_hold_anything() -> None:
    ignored = np.array([False, True, True, True])
    found = checks.numbers(column("0.5", "high", None, math.inf), "x", ignored=ignored)
    assert found.tolist() == [0.5, 0, 0, 0]
    with pytest.raises(InvalidSubmission, match="Row 2: x 'high' is not a number"):
        checks.numbers(column("0.5", "high"), "x", ignored=np.array([True, False]))


def test_sums_may_be_rounded_before_they_are_compared() -> None:
    checks.rows_sum_to_one(np.array([[0.5, 0.5 + 4e-7]]), decimals=6)
    with pytest.raises(InvalidSubmission, match="Row 1: the probabilities sum to"):
        checks.rows_sum_to_one(np.array([[0.5, 0.5 + 8e-7]]), decimals=6)
