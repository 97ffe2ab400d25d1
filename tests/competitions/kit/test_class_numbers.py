"""Class numbers are read as Python's `int` reads them, and what it cannot read is told by row."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from mlebench_console.competitions.kit import checks, tables
from mlebench_console.competitions.task import InvalidSubmission


def column(text: str) -> pd.DataFrame:
    return tables.read_csv(io.BytesIO(f"c\n{text}\n".encode()))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("27.7\n-3.9\n0", [27, -3, 0]),
        ("1\n2\n3", [1, 2, 3]),
        ("True\nFalse\nTrue", [1, 0, 1]),
        ("12\n1_000\n-5", [12, 1000, -5]),
        (f"{2**63}\n{2**64 - 1}", [2**63, 2**64 - 1]),
    ],
)
def test_fractions_are_cut_off(cells: str, expected: list[int]) -> None:
    assert checks.truncated_class_numbers(column(cells), "c").tolist() == expected


@pytest.mark.parametrize("bad", ["NA", "inf", "oak", "1e999", "3.5 ", "0x10", "1e300", "1" * 30, f"{2**63}"])
def test_what_is_no_number_is_told_by_row(bad: str) -> None:
    with pytest.raises(InvalidSubmission, match="Row 2"):
        checks.truncated_class_numbers(
            column(f"1\n{bad}\nx" if bad in ("oak", "3.5 ", "0x10") else f"1\n{bad}\n2"), "c"
        )


def test_the_first_of_several_guesses_counts() -> None:
    assert checks.first_class_numbers(column("302 11 954\n 8\t77\n5"), "c").tolist() == [302, 8, 5]
    assert checks.first_class_numbers(column("302\n8\n5"), "c").tolist() == [302, 8, 5]


@pytest.mark.parametrize(
    "cells", ["1 2\n3.0\n4", "1 2\nNA\n4", "1 2\n3,4\n4".replace("3,4", '"3,4"'), '1 2\n" "\n4']
)
def test_guesses_that_are_no_numbers_are_told_by_row(cells: str) -> None:
    with pytest.raises(InvalidSubmission, match="Row 2"):
        checks.first_class_numbers(column(cells), "c")


def test_a_column_of_fractions_holds_no_guess() -> None:
    with pytest.raises(InvalidSubmission, match="Row 1"):
        checks.first_class_numbers(column("1.0\n2.0\n3.0"), "c")
