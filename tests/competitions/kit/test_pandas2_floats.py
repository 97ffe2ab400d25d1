"""Decimals come as the former default reader of pandas gave them, last bits included."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.kit.tables import pandas2


def former(text: str) -> float:
    """The former reader written out for a single number, one digit after the other."""
    sign = -1.0 if text.startswith("-") else 1.0
    mantissa, _, exponent = text.lstrip("+-").lower().partition("e")
    whole, _, decimal = mantissa.partition(".")
    power = int(exponent or 0) + max(len(whole) - 17, 0) - len(decimal[: max(17 - len(whole), 0)])
    total = 0.0
    for digit in itertools.islice(whole + decimal, 17):
        total = total * 10.0 + int(digit)
    if power < -308:
        total, power = total / float(f"1e{-308 - power}"), -308
    return sign * (total * float(f"1e{power}") if power > 0 else total / float(f"1e{-power}"))


def restored(folder: Path, *texts: str) -> list[float]:
    path = folder / "x.csv"
    path.write_text("\n".join(["a", *texts, ""]))
    return pandas2.with_former_floats(tables.read_csv(path), path)["a"].tolist()


def test_known_numbers_differ_in_their_last_bit(tmp_path: Path) -> None:
    # from the conformance vectors of two competitions, as pandas 2.2 wrote them
    assert restored(tmp_path, "0.5", "-122.099914742258008") == [0.5, -122.099914742258]
    wrong = [
        text
        for text in map(repr, np.random.RandomState(0).rand(2000).tolist())
        if former(text) != float(text)
    ]
    assert len(wrong) > 100
    assert restored(tmp_path, *wrong) == [former(text) for text in wrong]


decimals = st.from_regex(
    r"[+-]?([0-9]{1,25}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,25}e[+-]?[0-9]{1,2})", fullmatch=True
)


@given(st.lists(decimals, min_size=1, max_size=20))
def test_any_decimal_is_read_as_before(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert restored(Path(folder), "0.5", *texts)[1:] == [former(text) for text in texts]


def test_what_is_no_plain_decimal_stays(tmp_path: Path) -> None:
    found = restored(
        tmp_path,
        "0.25",
        "NA",
        "inf",
        "-Infinity",
        "nan",
        " 0.1234567890123456789 ",
        "1e-400",
        "1e-99999999999999999999",
    )
    assert np.array_equal(
        found, [0.25, np.nan, np.inf, -np.inf, np.nan, former("0.1234567890123456789"), 0, 0], equal_nan=True
    )


def test_columns_of_other_kinds_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("n,t,f\n12345678901234567,a,0.5\n2,b,\n")
    table = tables.read_csv(path)
    pd.testing.assert_frame_equal(pandas2.with_former_floats(table, path), table)
