"""Tables are written as pandas writes them, to the byte, whatever their cells hold."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.kit.tables import csv_text, number_text

INT64 = st.integers(-(2**63), 2**63 - 1)
DECIMALS = st.one_of(
    st.floats(width=64),
    st.floats(width=32),
    st.builds(lambda units, places: units / 10**places, st.integers(-(10**17), 10**17), st.integers(0, 22)),
    st.builds(lambda power, sign: sign * 2.0**power, st.integers(-40, 60), st.sampled_from([1, -1])),
)
TEXTS = st.one_of(
    st.text(st.sampled_from(list('ab ,"\n;#é中0')), max_size=6),
    st.text(st.sampled_from("abc019-:. "), max_size=9),
    st.text(st.characters(codec="utf-8"), max_size=50),
    st.none(),
)
COLUMNS = {
    "int64": INT64,
    "uint64": st.integers(0, 2**64 - 1),
    "int8": st.integers(-128, 127),
    "float64": DECIMALS,
    "float32": st.floats(width=32),
    "bool": st.booleans(),
    "str": TEXTS,
    "object": st.one_of(st.integers(), DECIMALS, TEXTS),
}


@st.composite
def any_table(draw: st.DrawFn) -> pd.DataFrame:
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    rows = draw(st.integers(0, 6))
    columns = [
        pd.Series(draw(st.lists(COLUMNS[kind], min_size=rows, max_size=rows)), dtype=kind) for kind in kinds
    ]
    table = pd.concat(columns, axis=1)
    table.columns = pd.Index([draw(st.sampled_from(["a", "b,c", 'd"', "", "é"])) for _ in kinds])
    return table


def by_pandas(
    table: pd.DataFrame, float_format: str | None = None, separator: str = ",", *, quoted: bool = False
) -> bytes:
    stream = io.BytesIO()
    table.to_csv(
        stream,
        index=False,
        lineterminator="\n",
        float_format=float_format,
        sep=separator,
        quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL,
    )
    return stream.getvalue()


def by_us(
    table: pd.DataFrame, float_format: str | None = None, separator: str = ",", *, quoted: bool = False
) -> bytes:
    stream = io.BytesIO()
    tables.write_csv(table, stream, float_format=float_format, separator=separator, quote_text=quoted)
    return stream.getvalue()


@given(
    any_table(),
    st.sampled_from([None, "%.10g", "%.3g", "%.15g", "%.17g", "%.2f"]),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
def test_any_table_is_written_as_pandas_writes_it(
    table: pd.DataFrame, float_format: str | None, separator: str, quoted: bool
) -> None:
    assert by_us(table, float_format, separator, quoted=quoted) == by_pandas(
        table, float_format, separator, quoted=quoted
    )


@pytest.mark.parametrize("quoted", [False, True])
def test_columns_of_short_texts_are_quoted_where_they_must_be(quoted: bool) -> None:
    plain = [f"word{number}" for number in range(9000)]
    table = pd.DataFrame({"even": ["abc"] * 9000, "uneven": plain, "long": ["x" * 60] * 9000, "n": 1})
    table["tab"] = [text + "\t" for text in plain]
    table["gaps"] = [None, *plain[1:]]
    for separator in (",", "\t"):
        ours = by_us(table, None, separator, quoted=quoted)
        assert ours == by_pandas(table, None, separator, quoted=quoted)


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
    table = pd.DataFrame({"a": values, "b": 1})
    written = by_us(table).decode().splitlines()[1:]
    assert written == [f"{'' if value != value else repr(value)},1" for value in values.tolist()]


def test_decimals_are_right_without_a_type_wider_than_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_text, "_WIDE", False)
    table = pd.DataFrame({"a": [0.1, 1 / 3, 2e-7, 0.30000000000000004], "b": 1})
    assert by_us(table) == b"a,b\n0.1,1\n0.3333333333333333,1\n2e-07,1\n0.30000000000000004,1\n"
    assert by_us(table, "%.3g") == by_pandas(table, "%.3g")


def test_blocks_of_one_table_may_be_of_different_kinds() -> None:
    rows = 3 << 15
    texts = pd.Series(["short"] * rows, dtype="str")
    texts[rows // 2] = "a return\r"
    texts[rows - 1] = 'long "quoted", ' * 20
    table = pd.DataFrame({"id": np.arange(rows), "text": texts, "value": np.arange(rows) / 7})
    kinds = [type(block) for block in csv_text.blocks(table, csv_text.CellFormat())]
    assert kinds == [bytes, pd.DataFrame, bytes]
    assert by_us(table) == by_pandas(table)


def test_a_single_column_keeps_its_empty_cells() -> None:
    table = pd.DataFrame({"a": [1.5, np.nan]})
    assert by_us(table) == b'a\n1.5\n""\n'


def test_a_table_goes_to_a_file_in_a_new_folder(tmp_path: Path) -> None:
    tables.write_csv(pd.DataFrame({"a": [1], "b": [True]}), tmp_path / "new" / "t.csv")
    assert (tmp_path / "new" / "t.csv").read_bytes() == b"a,b\n1,True\n"
