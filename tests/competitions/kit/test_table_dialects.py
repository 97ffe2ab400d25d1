"""Tables in other dialects, in members of zips, and columns that are text where missing words stay missing."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.kit import archives, splits, tables
from mlebench_console.foundation.problems import DataProblem


def test_words_are_text_but_the_words_for_missing_are_missing() -> None:
    found = tables.read_csv(io.BytesIO(b"a,b\n007,1\nNA,2\n99999999999999999999999,3\n"), words=["a"])
    assert found["a"].isna().tolist() == [False, True, False]
    assert found["a"].dropna().tolist() == ["007", "99999999999999999999999"]
    assert found["b"].tolist() == [1, 2, 3]


def test_tables_may_be_separated_by_tabs() -> None:
    content = b'a\tb\n1\t"say ""no"", x"\n'
    for text in (None, ["b"], ()):
        found = tables.read_csv(io.BytesIO(content), separator="\t", text=text)
        assert found["b"].tolist() == ['say "no", x']
    written = io.BytesIO()
    tables.write_csv(found, written, separator="\t")
    assert written.getvalue() == content


def test_text_may_be_quoted_and_missing_text_with_it(tmp_path: Path) -> None:
    table = pd.DataFrame({"n": [1, 2], "t": ['a "b"', None]})
    tables.write_csv(table, tmp_path / "folder" / "t.csv", quote_text=True)
    assert (tmp_path / "folder" / "t.csv").read_bytes() == b'"n","t"\n1,"a ""b"""\n2,""\n'


def test_floats_may_be_cut_to_some_digits() -> None:
    written = io.BytesIO()
    tables.write_csv(pd.DataFrame({"n": [1, 2], "x": [0.1 + 0.2, 2.0]}), written, float_format="%.10g")
    assert written.getvalue() == b"n,x\n1,0.3\n2,2\n"


@pytest.mark.parametrize("compressed", [True, False])
def test_a_table_is_written_into_a_zip_and_read_from_it(tmp_path: Path, compressed: bool) -> None:
    table = pd.DataFrame({"id": [1, 2], "t": ["é", "x"]})
    path = tmp_path / "made" / "t.zip"
    with archives.new_member(path, "t.csv", compressed=compressed) as stream:
        tables.write_csv(table, stream)
    with zipfile.ZipFile(path) as archive:
        assert [info.compress_type == zipfile.ZIP_DEFLATED for info in archive.infolist()] == [compressed]
        assert archive.read("t.csv") == "id,t\n1,é\n2,x\n".encode()
    with archives.opened_member(path, "t.csv") as stream:
        pd.testing.assert_frame_equal(tables.read_csv(stream), table)


def test_a_member_is_opened_in_whatever_folder_it_lies_and_missing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with archives.new_member(path, "folder/t.csv") as stream:
        stream.write(b"x\n1\n")
    with archives.opened_member(path, "t.csv") as stream:
        assert stream.read() == b"x\n1\n"
    with pytest.raises(DataProblem, match=r"u\.csv is missing"), archives.opened_member(path, "u.csv"):
        pass


def test_a_damaged_member_is_told_while_it_is_read_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with archives.new_member(path, "t.csv", compressed=False) as stream:
        stream.write(b"x\n" + b"12345\n" * 1000)
    path.write_bytes(path.read_bytes().replace(b"12345", b"99999", 1))
    with (
        pytest.raises(DataProblem, match="cannot be read as a zip"),
        archives.opened_member(path, "t.csv") as stream,
    ):
        tables.read_csv(stream)


def test_groups_are_listed_one_after_the_other_as_they_were_shuffled() -> None:
    groups = ["c", "a", "b", "a", None, "d", "c", "e"]
    names = ["a", "b", "c", "d", "e"]
    shuffled = splits.shuffled(5, 0.4, 7)
    found = splits.listed_groups(groups, 0.4, 7)
    for part, chosen in ((found.train, shuffled.train), (found.test, shuffled.test)):
        expected = [row for name in (names[i] for i in chosen) for row, g in enumerate(groups) if g == name]
        assert part.tolist() == expected
