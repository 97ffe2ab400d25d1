"""Rows taken from a large file, in any order, are written with the bytes of one big table."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from competitions.kit import tables
from competitions.kit.splits import Split
from competitions.kit.tables import plain_rows, reordering, row_file
from competitions.kit.tables.rows import Division, NotApartError, RowFile
from competitions.kit.tables.streamed_rows import PresumedRows, StreamedRows

# Numbers beyond 64 bits are left out: beside them pandas 3.1 takes "NA" for text, depending on the first row.
CELLS = st.sampled_from(
    [
        *(
            "",
            "NA",
            "x",
            '"a"b"',
            "a b",
            '"a,b"',
            '"two\nlines"',
            '"say ""no"""',
            '"\r\n"',
            '5" pipe',
            "007",
            "true",
        ),
        *("1", "-3", "2.50", "57.329999999999998", "1e5", "0.1", " ", "é"),
    ]
)
LINES = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])


class AsText(TypedDict, total=False):
    """Which columns are read verbatim, and which as words that may be missing."""

    text: list[str]
    words: list[str]


@pytest.fixture
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_file, "_SMALL", 0)
    monkeypatch.setattr(row_file, "_BLOCK", 3)
    monkeypatch.setattr(plain_rows, "PIECE", 24)
    monkeypatch.setattr(reordering, "_PIECE", 16)


def opened(path: Path, **columns: Unpack[AsText]) -> RowFile:
    return row_file.opened(
        lambda: path.open("rb"), path.stat().st_size, unreadable=lambda why: why, **columns
    )


def is_streamed(path: Path, **columns: Unpack[AsText]) -> bool:
    rows = opened(path, **columns)
    if isinstance(rows, PresumedRows):
        rows = rows.known()
    return isinstance(rows, StreamedRows)


def text_of(table: pd.DataFrame, *, quote_text: bool = False) -> bytes:
    stream = io.BytesIO()
    tables.write_csv(table, stream, quote_text=quote_text)
    return stream.getvalue()


def check(path: Path, order: np.ndarray, *, quote_text: bool = False) -> None:
    """Divided block by block, a table comes to what it comes to when it is divided as a whole."""
    split = Split(train=order[len(order) // 3 :], test=order[: len(order) // 3])
    whole = tables.read_csv(path)
    train = io.BytesIO()
    test = opened(path).divide(Division(split, quote_text=quote_text), train, path.parent)
    assert train.getvalue() == text_of(whole.iloc[split.train], quote_text=quote_text)
    assert text_of(test) == text_of(whole.iloc[split.test])
    assert test.index.tolist() == split.test.tolist()
    assert {found.name for found in path.parent.iterdir()} == {path.name}


@pytest.mark.usefixtures("tiny_steps")
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=200)
@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=12),
    LINES,
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_table_is_written_as_a_whole_one(
    tmp_path_factory: pytest.TempPathFactory,
    cells: list[list[str]],
    end: str,
    ended: bool,
    quote_text: bool,
    chance: object,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    content = end.join(["a,b,c", *(",".join(["k", *line[1:]]) for line in cells)]) + (end if ended else "")
    path.write_bytes(content.encode())
    count = len(tables.read_csv(path))
    order = np.array(chance.sample(range(count), count), dtype=np.intp)  # type: ignore[attr-defined]  # a random.Random
    check(path, order, quote_text=quote_text)
    check(path, np.sort(order), quote_text=quote_text)


@pytest.mark.usefixtures("tiny_steps")
@pytest.mark.parametrize(
    ("content", "streamed"),
    [
        ("k,x,n\na,1.50,1\nb,2,2\nc,,3\nd,7,4\ne,8.25,5\n", True),
        ("k,n\n" + "".join(f'"row\n{n}",{n}\n' for n in range(40)) + "last,40", True),
        ("k,n\r\na,1\r\nb,2\r\n", True),
        ("k,n\na,1\n\n\nb,2\n", True),
        ("k,n\na,1\rb,2\n", True),
        ("k,n\na,1\n \nb,2\n", True),
        ('k,n\n"a ""b"" c",1\n"",2\n', True),
        ('k,n\n5" pipe,1\n"a\nb",2\n', True),
        ('k,n\n"a"b"c",1\nd,2\n', True),
        ("k,n\n" + "a,1\n" * 9 + "b,\n" * 9, True),
        ("k,n\n" + "a,\n" * 9 + "b,x\n" * 9, True),
        ("k,n\n" + "a,\n" * 20, True),
        ("k,n\n" + "a,1\n" * 20 + "b,x\n", False),
        ("k,n\na,true\n", False),
        ("k,n\na,1.5\n" + "b,1e999\n" * 9, False),
        ("k,n\na,1\n" + "b,99999999999999999999\n" * 9, False),
        ("k,n\n" + "a,1,2\n" * 9, False),
    ],
)
def test_what_can_be_streamed_is_and_what_cannot_is_held(
    content: str, streamed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    assert is_streamed(path) == streamed
    if not content.endswith("a,1,2\n"):
        check(path, np.arange(len(tables.read_csv(path)))[::-1])


@pytest.mark.usefixtures("tiny_steps")
@pytest.mark.parametrize("columns", [{"text": ["k"]}, {"words": ["k"]}])
def test_columns_of_text_are_read_as_in_a_whole_table(tmp_path: Path, columns: AsText) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,n\n" + "".join(f"00{n},{n}\nNA,{n}\n" for n in range(9)))
    assert is_streamed(path, **columns)
    rows = opened(path, **columns)
    assert rows.columns == ["k", "n"]
    assert len(rows) == 18
    whole = tables.read_csv(path, **columns)
    pd.testing.assert_frame_equal(pd.concat(rows.blocks()), whole)
    pd.testing.assert_frame_equal(pd.concat(rows.blocks(["n"])), whole[["n"]])


@pytest.mark.usefixtures("tiny_steps")
@pytest.mark.parametrize("small", [0, 1 << 30])
def test_rows_may_be_changed_by_their_positions_before_they_are_written(
    tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_file, "_SMALL", small)
    path = tmp_path / "t.csv"
    path.write_text("k\n" + "".join(f"{letter}\n" for letter in "abcdefgh"))
    train = io.BytesIO()
    split = Split(train=np.array([7, 0, 5, 2, 6]), test=np.array([4, 1]))
    division = Division(split, changed=lambda rows: rows.assign(place=rows.index), quote_text=True)
    test = opened(path).divide(division, train, tmp_path)
    assert train.getvalue() == b'"k","place"\n"h",7\n"a",0\n"f",5\n"c",2\n"g",6\n'
    assert test["k"].tolist() == ["e", "b"]


def test_small_files_are_held(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n")
    assert not is_streamed(path)
    rows = opened(path)
    assert (len(rows), rows.columns) == (2, ["a"])
    pd.testing.assert_frame_equal(pd.concat(rows.blocks(["a"])), tables.read_csv(path))


@pytest.mark.usefixtures("tiny_steps")
def test_rows_with_equal_texts_share_a_number(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,n,x\na,b,1\na,c,2\nb,a,3\na,b,4\n,ab,5\nab,,6\na,c,7\n")
    rows = opened(path, text=["k", "n", "x"])
    assert row_file.groups_of(rows, ["k", "n"]).tolist() == [0, 1, 2, 0, 3, 4, 1]


@pytest.mark.parametrize("small", [0, 1 << 30])
@pytest.mark.parametrize("numbers", [True, False])
def test_a_cell_that_must_not_stand_in_both_parts_is_told(
    small: int, numbers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_file, "_SMALL", small)
    monkeypatch.setattr(plain_rows, "PIECE", 24)
    path = tmp_path / "t.csv"
    keys = [str(row) if numbers else f"key {row}" for row in (0, 1, 2, 3, 4, 2, 6, 7, 8, 9)]
    path.write_text("k,n\n" + "".join(f"{key},{row}\n" for row, key in enumerate(keys)))
    for test, apart in (([9, 0], True), ([5, 2], True), ([0, 2], False), ([5], False)):
        split = Split(
            np.array([row for row in (3, 8, 1, 7, 4, 6, 5, 2, 9, 0) if row not in test]), np.array(test)
        )
        if apart:
            found = opened(path).divide(Division(split, apart="k"), io.BytesIO(), tmp_path)
            assert found["n"].tolist() == test
            continue
        with pytest.raises(NotApartError):
            opened(path).divide(Division(split, apart="k"), io.BytesIO(), tmp_path)
