"""A table that is too large to be held is divided into the bytes that a held one is divided into."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.kit.splits import Split
from mlebench_console.competitions.kit.tables import large_tables
from mlebench_console.competitions.kit.tables.large_tables import RawTable
from mlebench_console.foundation.problems import DataProblem

TYPES = {"key": "str", "number": "float64", "words": "str"}
WORDS = st.sampled_from(
    [
        *("", "NA", "x", '"a"b"', "a b", '"a,b"', '"two\nlines"', '"say ""no"""', '"\r\n"', '5" pipe'),
        *("007", "true", "-3", "2.50", "1e5", " ", "é"),
    ]
)
NUMBERS = st.sampled_from(["", "NA", "1", "2.50", "57.329999999999998", "1e5", "0.1"])
LINES = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is large, and read three rows at a time."""
    monkeypatch.setattr(large_tables, "_SMALL", 0)
    monkeypatch.setattr(large_tables, "_ROWS", 3)


def written(table: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    tables.write_csv(table, stream)
    return stream.getvalue()


@pytest.mark.usefixtures("large")
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(NUMBERS, WORDS), min_size=2, max_size=12),
    LINES,
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_table_is_divided_as_a_whole_one(
    tmp_path_factory: pytest.TempPathFactory,
    cells: list[tuple[str, str]],
    end: str,
    ended: bool,
    chance: object,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    content = end.join(["key,number,words", *(",".join(["k", *line]) for line in cells)]) + ended * end
    path.write_bytes(content.encode())
    whole = tables.read_csv(path, words=["words"]).astype({"number": "float64"})
    order = np.array(chance.sample(range(len(whole)), len(whole)), dtype=np.intp)  # type: ignore[attr-defined]
    split = Split(train=order[1:], test=order[:1])
    train = io.BytesIO()
    test = large_tables.write_train(RawTable(path, None, TYPES, (), ["words"]), lambda _: split, train)
    assert train.getvalue() == written(whole.iloc[split.train])
    assert written(test) == written(whole.iloc[split.test])


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("columns", [{"text": ["key"]}, {"words": ["key"]}])
def test_columns_of_text_are_read_as_in_a_whole_table(tmp_path: Path, columns: dict[str, list[str]]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("key,number\n" + "".join(f"00{n},{n}\nNA,{n}\n" for n in range(9)))
    table = RawTable(path, None, {"key": "str", "number": "int64"}, **columns)
    assert table.columns == ["key", "number"]
    whole = tables.read_csv(path, text=columns.get("text"), words=columns.get("words", ()))
    pd.testing.assert_frame_equal(pd.concat(table.blocks()), whole)
    pd.testing.assert_frame_equal(pd.concat(table.blocks(["number"])), whole[["number"]])


@pytest.mark.parametrize("small", [0, 1 << 30])
def test_rows_held_out_are_returned_and_the_others_written(
    small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_tables, "_SMALL", small)
    monkeypatch.setattr(large_tables, "_ROWS", 3)
    path = tmp_path / "t.csv"
    path.write_text("key\n" + "".join(f"{letter}\n" for letter in "abcdefgh"))
    target = io.BytesIO()
    numbered = (rows.assign(place=rows.index) for rows in RawTable(path, None, {"key": "str"}).blocks())
    held = large_tables.write_rest(numbered, lambda rows: rows["key"] >= "e", target, quote_text=True)
    assert target.getvalue() == b'"key","place"\n"a",0\n"b",1\n"c",2\n"d",3\n'
    assert held["place"].tolist() == [4, 5, 6, 7]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("key,number,words\na,1,x\n3,2,y\n" + "4,5,z\n" * 3, "column key holds numbers"),
        ("key,number,words\n" + "a,b,c\n" * 3, "cannot be read as a table"),
        ("key,number,words\n" + "a,b,1,x\n" * 9, "more cells than its header"),
        ("key,number,words\na,1,x\nb,1,x,y,z\n", "cannot be read as a table"),
        ("key,number,words\na,1,\xff\n", "cannot be read as a table"),
    ],
)
def test_a_table_that_is_not_as_stated_is_refused(content: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataProblem, match=why):
        list(RawTable(path, None, TYPES).blocks())


@pytest.mark.usefixtures("large")
def test_rows_with_equal_texts_share_a_number(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k,n,x\na,b,1\na,c,2\nb,a,3\na,b,4\n,ab,5\nab,,6\na,c,7\n")
    table = RawTable(path, None, dict.fromkeys("knx", "str"), text=["k", "n", "x"])
    assert large_tables.groups_of(table, ["k", "n"]).tolist() == [0, 1, 2, 0, 3, 4, 1]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", ["int64", "str"])
def test_a_cell_that_must_not_stand_in_both_parts_is_told(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    keys = [str(row) if kind == "int64" else f"key {row}" for row in (0, 1, 2, 3, 4, 2, 6, 7, 8, 9)]
    path.write_text("k,n\n" + "".join(f"{key},{row}\n" for row, key in enumerate(keys)))
    table = RawTable(path, None, {"k": kind, "n": "int64"})

    def divided(test: list[int]) -> list[int]:
        train = [row for row in (3, 8, 1, 7, 4, 6, 5, 2, 9, 0) if row not in test]
        split = Split(np.array(train), np.array(test))
        found = large_tables.write_train(table, lambda _: split, io.BytesIO(), apart="k")
        return found["n"].tolist()

    assert [divided(test) for test in ([9, 0], [5, 2])] == [[9, 0], [5, 2]]
    for test in ([0, 2], [5]):
        with pytest.raises(DataProblem, match="a k of a test row occurs there twice"):
            divided(test)


MEASURED = """
import re, sys
from pathlib import Path
import numpy as np
from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.kit.splits import Split
from mlebench_console.competitions.kit.tables import large_tables
from mlebench_console.competitions.kit.tables.large_tables import RawTable
def most():  # what the system counts otherwise begins with what the parent had
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
folder, large_tables._SMALL = Path(sys.argv[1]), 0
types = {"id": "str", "number": "float64", "text": "str", "count": "int64"}
def divide(name):
    order = np.random.RandomState(0).permutation
    with (folder / f"written-{name}").open("xb") as stream:
        table = RawTable(folder / name, None, types)
        large_tables.write_train(table, lambda n: Split(order(n)[1000:], order(n)[:1000]), stream)
"""
SHUFFLED = """
divide("small.csv")
before = most()
divide("large.csv")
print(most() - before)
"""
SPOKEN = """
from mlebench_console import prepare_competition
def prepared(raw, data):
    prepare_competition(
        "text-normalization-challenge-russian-language", raw=raw, data_dir=data, descriptions="ours",
        edition="corrected", parameters={"test_size": 0.001},
    )
prepared(folder / "small", folder / "warm")
before = most()
prepared(folder / "large", folder / "written")
print(most() - before)
"""


def grown(folder: Path, program: str) -> int:
    command = [sys.executable, "-c", MEASURED + program, str(folder)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_dividing_a_large_table_takes_at_most_twice_its_size_in_memory(tmp_path: Path) -> None:
    thousand = "".join(f"{{0}}{row:03d},{row / 7},text of row {row:03d},{row}\n" for row in range(1000))
    for name, blocks in (("small.csv", 60), ("large.csv", 2000)):
        with (tmp_path / name).open("w") as stream:
            stream.write("id,number,text,count\n")
            stream.writelines(thousand.format(f"k{block:04d}") for block in range(blocks))
    assert grown(tmp_path, SHUFFLED) < 2 * (tmp_path / "large.csv").stat().st_size


def test_dividing_sentences_takes_at_most_twice_their_size_in_memory(tmp_path: Path) -> None:
    size = 0
    for name, count in (("small", 60_000), ("large", 600_000)):
        (tmp_path / name).mkdir()
        word = "предложение"  # so that rows are as long as the real ones
        tokens = (f'{row // 9},{row % 9},"PLAIN","{word}{row}","{word}{row % 7}"\n' for row in range(count))
        text = '"sentence_id","token_id","class","before","after"\n' + "".join(tokens)
        size = len(text.encode())
        for table, content in (("train", text), ("test_2", ""), ("sample_submission_2", "")):
            with zipfile.ZipFile(tmp_path / name / f"ru_{table}.csv.zip", "w") as archive:
                archive.writestr(f"ru_{table}.csv", content)
    assert grown(tmp_path, SPOKEN) < 2 * size
