"""Parquet tables are divided as a whole table in memory would be, stretch by stretch, and summed by what they hold."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mlebench_console.competitions.kit.tables import parquet
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem
from tests.competitions.conftest import MakeJob

TABLE = pd.DataFrame({"key": [7, 7, 3, 9, 3, 7], "row": range(6), "angle": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parquet, "_STRETCH", 2)
    target = tmp_path / "events.parquet"
    TABLE.to_parquet(target, row_group_size=4)
    return target


def test_values_are_told_in_order_of_appearance(path: Path) -> None:
    assert parquet.distinct(path, "key").tolist() == [7, 3, 9]


@pytest.mark.parametrize(
    ("keys", "columns"), [([7], ["row", "key", "angle"]), ([9, 3], ["row"]), ([1], ["row"])]
)
def test_parts_hold_their_rows_and_columns_in_order(
    keys: list[int], columns: list[str], path: Path, make_job: MakeJob, tmp_path: Path
) -> None:
    target = tmp_path / "made" / "part.parquet"
    parquet.write(make_job(), target, parquet.rows_with(path, "key", np.array(keys), columns))
    expected = TABLE[TABLE["key"].isin(keys)][columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.read_parquet(target), expected)


def test_damaged_and_missing_files_and_columns_are_named(path: Path) -> None:
    with pytest.raises(
        DataProblem, match=r"events\.parquet is not in the expected form: it has no column lock"
    ):
        parquet.distinct(path, "lock")
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-20], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataProblem, match=r"events\.parquet cannot be read"):
            parquet.distinct(path, "key")
    path.unlink()
    with pytest.raises(DataProblem, match=r"events\.parquet"):
        parquet.distinct(path, "key")


def test_a_missing_library_is_told_with_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(EnvironmentProblem, match=r"mlebench-console\[parquet\]"):
        parquet.distinct(path, "key")


NAMES = pd.Series(["a", None, "b", "", "c\n", "d"])
MIXED = TABLE.assign(name=NAMES, angle=[0.1, np.nan, 0.3, -0.0, 0.5, 0.6])


def content_sum(table: pa.Table, path: Path, **how: object) -> str:
    pq.write_table(table, path, **how)
    return parquet.content_sum(path)


def test_a_content_has_one_sum_whoever_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.parquet"
    plain = pa.Table.from_pandas(MIXED)
    found = content_sum(plain, path)
    as_nan = pa.array(MIXED["angle"].to_numpy(), from_pandas=False)
    alike = [
        plain.replace_schema_metadata(None),
        plain.set_column(plain.schema.get_field_index("angle"), "angle", as_nan),
        plain.set_column(plain.schema.get_field_index("name"), "name", plain["name"].dictionary_encode()),
        plain.set_column(plain.schema.get_field_index("name"), "name", plain["name"].cast(pa.large_string())),
    ]
    assert {content_sum(table, path) for table in alike} == {found}
    assert content_sum(plain, path, compression="gzip", row_group_size=4, use_dictionary=False) == found
    monkeypatch.setattr(parquet, "_STRETCH", 3)
    assert content_sum(plain, path, row_group_size=4) == found


@pytest.mark.parametrize(
    "changed",
    [
        MIXED.assign(row=[0, 1, 2, 3, 4, 6]),
        MIXED.assign(row=MIXED["row"].astype("int32")),
        MIXED.assign(angle=[0.1, 0.0, 0.3, -0.0, 0.5, 0.6]),
        MIXED.assign(name=NAMES[[0, 3, 2, 1, 4, 5]].to_numpy()),
        MIXED.iloc[::-1].reset_index(drop=True),
        MIXED[["row", "key", "angle", "name"]],
        MIXED.rename(columns={"key": "Key"}),
        MIXED.iloc[:5],
    ],
    ids=["cell", "type", "missing number", "missing text", "rows", "columns", "name", "fewer"],
)
def test_whatever_changes_in_a_content_changes_its_sum(tmp_path: Path, changed: pd.DataFrame) -> None:
    first, second = (
        content_sum(pa.Table.from_pandas(table), tmp_path / "events.parquet") for table in (MIXED, changed)
    )
    assert first != second
