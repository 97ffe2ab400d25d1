"""Tables are written with the bytes that MLE-bench's are: every version of pandas has to give them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.kit import tables


def written(table: pd.DataFrame, float_format: str | None = None) -> bytes:
    stream = io.BytesIO()
    tables.write_csv(table, stream, float_format=float_format)
    return stream.getvalue()


def _awkward() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    count = 20_000
    units = random.integers(1, 10**6, count) / 10 ** random.integers(0, 7, count)
    return {
        "any bits": random.integers(0, 2**64, count, dtype=np.uint64).view(np.float64),
        "uniform": random.random(count),
        "normal": random.normal(size=count) * 100,
        "single precision": random.random(count).astype(np.float32).astype(np.float64),
        "rounded": np.round(random.random(count) * 80, 6),
        "fifteen digits": random.integers(0, 10**15, count) / 10**9,
        "sixteen digits": np.round(random.random(count), 16),
        "next to short ones": np.nextafter(units, np.inf),
        "below short ones": np.nextafter(units, 0),
        "large": random.random(count) * 1e17,
        "small": random.random(count) * 1e-3,
        "halves": random.integers(0, 10**17, count) / 2,
        "powers of two": 2.0 ** random.integers(-40, 70, count),
    }


@pytest.mark.parametrize("kind", list(_awkward()))
def test_decimals_are_the_shortest_that_give_the_same_double(kind: str) -> None:
    values = _awkward()[kind]
    values = np.where(np.arange(len(values)) % 3, values, -values)
    lines = written(pd.DataFrame({"a": values, "b": 1})).decode().splitlines()[1:]
    assert lines == [f"{'' if value != value else repr(value)},1" for value in values.tolist()]


def test_decimals_have_the_digits_that_a_format_asks_for() -> None:
    table = pd.DataFrame({"a": [0.1, 1 / 3, 2e-7, np.nan], "b": 1})
    assert written(table, "%.3g") == b"a,b\n0.1,1\n0.333,1\n2e-07,1\n,1\n"


def test_cells_are_quoted_where_they_must_be() -> None:
    table = pd.DataFrame({"a": ["x", "a, b", '"', "two\nlines", "a\treturn", None], "b": True})
    expected = b'a,b\nx,True\n"a, b",True\n"""",True\n"two\nlines",True\na\treturn,True\n,True\n'
    assert written(table) == expected


def test_a_single_column_keeps_its_empty_cells() -> None:
    assert written(pd.DataFrame({"a": [1.5, np.nan]})) == b'a\n1.5\n""\n'


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_table_goes_to_a_file_in_a_new_folder_as_plain_text(name: str, tmp_path: Path) -> None:
    tables.write_csv(pd.DataFrame({"a": [1], "b": [True]}), tmp_path / "new" / name)
    assert (tmp_path / "new" / name).read_bytes() == b"a,b\n1,True\n"
