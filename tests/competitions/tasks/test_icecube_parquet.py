"""Parquet tables are divided as a whole table in memory would be, stretch by stretch."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from competitions.registry import get, load_task
from foundation.problems import DataProblem, EnvironmentProblem
from tests.competitions.conftest import MakeJob

parquet = load_task(get("icecube-neutrinos-in-deep-ice")).parquet

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
