"""What is written has its sum at once; what has changed since has none that could be wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd

from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.placing import checksummed

TABLE = pd.DataFrame({"a": range(20_000), "b": ["x, y"] * 20_000})


def sum_of(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def test_tables_and_json_have_their_sums_when_they_are_written(tmp_path: Path) -> None:
    tables.write_csv(TABLE, tmp_path / "a" / "plain.csv")
    tables.write_csv(TABLE, tmp_path / "quoted.csv", quote_text=True)  # by pandas
    json_files.write_json(tmp_path / "x.json", [{"a": "\u00e4"}], indent=2)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert [checksummed.md5_of(path) for path in files] == [sum_of(path) for path in files]


def test_a_moved_file_keeps_its_sum_and_a_changed_one_loses_it(tmp_path: Path) -> None:
    for name in ("moved", "changed"):
        tables.write_csv(TABLE, tmp_path / name)
    moved = (tmp_path / "moved").rename(tmp_path / "elsewhere")
    with (tmp_path / "changed").open("ab") as stream:
        stream.write(b"1,2\n")
    assert checksummed.md5_of(moved) == sum_of(moved)
    assert checksummed.md5_of(tmp_path / "changed") is None


def test_a_file_that_was_given_up_has_no_sum(tmp_path: Path) -> None:
    path = tmp_path / "half.csv"
    try:
        with checksummed.created(path) as stream:
            stream.write(b"half")
            raise InterruptedError
    except InterruptedError:
        assert checksummed.md5_of(path) is None
