"""Rows taken from a large file, in any order, are written with the bytes of one big table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from competitions.kit import row_file, tables

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


@pytest.fixture
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_file, "_SMALL", 0)
    monkeypatch.setattr(row_file, "_SCAN", 7)
    monkeypatch.setattr(row_file, "_BLOCK", 3)


def check(path: Path, order: np.ndarray) -> None:
    whole, found = path.with_name("whole.csv"), path.with_name("found.csv")
    tables.write_csv(tables.read_csv(path).iloc[order], whole)
    rows = row_file.opened(path)
    row_file.write(rows.blocks(order), found)
    assert found.read_bytes() == whole.read_bytes()


@pytest.mark.usefixtures("tiny_steps")
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=200)
@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=12),
    LINES,
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_table_is_written_as_a_whole_one(
    tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]], end: str, ended: bool, chance: object
) -> None:
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    content = end.join(["a,b,c", *(",".join(["k", *line[1:]]) for line in cells)]) + (end if ended else "")
    path.write_bytes(content.encode())
    count = len(tables.read_csv(path))
    order = np.array(chance.sample(range(count), count), dtype=np.intp)  # type: ignore[attr-defined]  # a random.Random
    check(path, order)


@pytest.mark.usefixtures("tiny_steps")
@pytest.mark.parametrize(
    ("content", "streamed"),
    [
        ("k,x,n\na,1.50,1\nb,2,2\nc,,3\nd,7,4\ne,8.25,5\n", True),
        ("k,n\n" + "".join(f'"row\n{n}",{n}\n' for n in range(40)) + "last,40", True),
        ("k,n\r\na,1\r\nb,2\r\n", True),
        ("k,n\na,1\n\n\nb,2\n", True),
        ("k,n\na,1\rb,2\n", False),
        ("k,n\na,1\n \nb,2\n", False),
        ("k,n\n" + "a,1\n" * 20 + "b,x\n", False),
        ("k,n\na,true\n", False),
        ('k,n\n"a ""b"" c",1\n"",2\n', True),
        ('k,n\n5" pipe,1\n"a\nb",2\n', False),
        ('k,n\n"a"b"c",1\nd,2\n', False),
    ],
)
def test_what_can_be_streamed_is_and_what_cannot_is_held(
    content: str, streamed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    assert (row_file._plain(path, (), ()) is not None) == streamed
    check(path, np.arange(len(tables.read_csv(path)))[::-1])


@pytest.mark.usefixtures("tiny_steps")
def test_columns_of_text_are_verbatim(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,n\n" + "".join(f"00{n},{n}\nNA,{n}\n" for n in range(9)))
    rows = row_file.opened(path, text=["k"])
    assert row_file._plain(path, ["k"], ()) is not None
    row_file.write(rows.blocks(), tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_bytes() == path.read_bytes()
    assert rows.columns == ["k", "n"]


def test_small_files_are_held(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n")
    rows = row_file.opened(path)
    assert len(rows) == 2
    pd.testing.assert_frame_equal(pd.concat(rows.blocks()), tables.read_csv(path))


@pytest.mark.usefixtures("tiny_steps")
def test_columns_of_words_are_text_with_missing_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,n\n" + "".join(f"00{n},{n}\nNA,{n}\n" for n in range(9)))
    assert row_file._plain(path, (), ["k"]) is not None
    rows = row_file.opened(path, words=["k"])
    pd.testing.assert_frame_equal(
        pd.concat(rows.blocks(), ignore_index=True), tables.read_csv(path, words=["k"])
    )


@pytest.mark.usefixtures("tiny_steps")
def test_rows_with_equal_texts_share_a_number(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,n,x\na,b,1\na,c,2\nb,a,3\na,b,4\n,ab,5\nab,,6\na,c,7\n")
    rows = row_file.opened(path, text=["k", "n", "x"])
    assert row_file.groups_of(rows, ["k", "n"]).tolist() == [0, 1, 2, 0, 3, 4, 1]
