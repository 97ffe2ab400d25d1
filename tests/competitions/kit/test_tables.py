"""CSV is read and written as pandas 2.2 did it for MLE-bench."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.kit import tables


def read(content: bytes, **options: object) -> pd.DataFrame:
    return tables.read_csv(io.BytesIO(content), **options)  # type: ignore[arg-type]  # one option at a time


def test_numbers_become_the_nearest_double() -> None:
    text = "0.1000000000000000055511151231257827\n8.443562943612354e-05\n3.0000000000000004\n"
    found = read(b"x\n" + text.encode())["x"].tolist()
    assert found == [float(word) for word in text.split()]


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n"])
def test_an_empty_file_is_an_empty_table(content: bytes) -> None:
    found = read(content)
    assert found.shape == (0, 0)


def test_a_byte_order_mark_and_crlf_are_fine() -> None:
    found = read(b"\xef\xbb\xbfid,x\r\n1,2\r\n")
    assert found.to_dict("list") == {"id": [1], "x": [2]}


def test_words_for_missing_cells_are_missing_by_default() -> None:
    found = read(b"x,y\n" + b"".join(f'"{word}",1\n'.encode() for word in tables.NA_WORDS))
    assert len(found) == len(tables.NA_WORDS)
    assert found["x"].isna().all()


def test_text_columns_are_verbatim_and_others_are_not() -> None:
    found = read(b"a,b\nNA,NA\n007,1\n,2\n", text=["a"])
    assert found["a"].tolist() == ["NA", "007", ""]
    assert found["b"].isna().tolist() == [True, False, False]


def test_all_columns_can_be_verbatim() -> None:
    found = read(b"a,b\nNA,1.50\n", text=())
    assert found.to_dict("list") == {"a": ["NA"], "b": ["1.50"]}


def test_only_the_named_columns_are_read() -> None:
    assert list(read(b"a,b,c\n1,2,3\n", columns=["c"]).columns) == ["c"]


def test_a_mixed_column_warns_nobody() -> None:
    rows = [str(number) for number in range(300_000)]
    rows[-1] = "text"
    assert len(read(("x\n" + "\n".join(rows) + "\n").encode())) == 300_000


def test_a_name_that_looks_compressed_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(b"a\n1\n")
    assert tables.read_csv(path)["a"].tolist() == [1]


def test_writing_is_minimal(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"a": [1.0, 1 / 99, None], "b": ["plain", 'say "x"', "two\nlines"], "c": [True, False, True]}
    )
    path = tmp_path / "made" / "x.csv"
    tables.write_csv(table, path)
    expected = 'a,b,c\n1.0,plain,True\n0.010101010101010102,"say ""x""",False\n,"two\nlines",True\n'
    assert path.read_bytes().decode() == expected


def test_one_hot_has_a_column_for_classes_that_do_not_occur() -> None:
    found = tables.one_hot(pd.Series(["b", "a"], index=[5, 3]), ["a", "b", "c"])
    assert found.to_dict("list") == {"a": [0, 1], "b": [1, 0], "c": [0, 0]}
    assert found.index.tolist() == [5, 3]
