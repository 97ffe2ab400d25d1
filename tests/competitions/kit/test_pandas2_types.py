"""A column with a number that no type holds is text, as pandas up to 3.0 read it, whatever stands around it."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.kit import tables

HUGE = "99999999999999999999"


def column(cells: list[str], *, text: list[str] | None = None) -> pd.Series:
    content = "k,x\n" + "".join(f"k,{cell}\n" for cell in cells)
    return tables.read_csv(io.BytesIO(content.encode()), text=text)["x"]


@pytest.mark.parametrize("text", [None, ["k"]])
@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1e999", "1.50", ""], ["1e999", "1.50", None]),
        (["inf", "1e400"], ["inf", "1e400"]),
        (["007", HUGE], ["007", HUGE]),
        ([" 1", "-9223372036854775809", "NA"], [" 1", "-9223372036854775809", None]),
        ([HUGE, "NA", "x"], [HUGE, None, "x"]),
        (["", "NA", "2", HUGE, "", "x"], [None, None, "2", HUGE, None, "x"]),
        ([HUGE, "null", "1.5"], [HUGE, None, "1.5"]),
    ],
)
def test_a_number_beyond_all_types_makes_a_column_text(
    cells: list[str], read: list[str | None], text: list[str] | None
) -> None:
    found = column(cells, text=text)
    assert [None if pd.isna(cell) else cell for cell in found] == read


@pytest.mark.parametrize(
    "cells",
    [
        ["inf", "1"],
        ["-Infinity", "+inf", "", "-1e400"],
        ["1", "18446744073709551615"],
        ["0.5", HUGE],
        ["5", "NA"],
    ],
)
def test_other_columns_of_numbers_stay_numbers(cells: list[str]) -> None:
    found = column(cells)
    assert pd.api.types.is_numeric_dtype(found)
    assert np.array_equal(
        found.to_numpy(dtype=float),
        [float(c) if c not in ("", "NA") else np.nan for c in cells],
        equal_nan=True,
    )


def test_two_columns_of_one_name_are_told_apart() -> None:
    found = tables.read_csv(io.BytesIO(b"x,x\n1,1e999\n2,3\n"))
    assert found.to_numpy(dtype=object).tolist() == [[1, "1e999"], [2, "3"]]


def test_verbatim_columns_are_left_alone() -> None:
    assert column(["1e999", "NA"], text=["x"]).tolist() == ["1e999", "NA"]
