"""Parquet files are verified by what they hold: whoever writes them again with the same cells changes nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import CONTENT, Checksums
from mlebench_console.engine.datasets.prepared.checksums import check_known, checksums_of
from mlebench_console.engine.datasets.prepared.verification import verify
from mlebench_console.engine.layout import DatasetFolder
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.prepared import prepared

ID = "icecube-neutrinos-in-deep-ice"
NAME = "test_meta.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> DatasetFolder:
    """A copy of a prepared dataset, without a manifest, which knows the bytes of its files."""
    found = DatasetFolder(tmp_path / ID, "v1")
    shutil.copytree(prepared(ID), found.prepared)
    marker = json.loads(found.marker.read_text())
    del marker["manifest"]
    found.marker.write_text(json.dumps(marker))
    return found


def changed(folder: DatasetFolder) -> list[str]:
    return verify(registry.get(ID), folder).changed


def test_a_parquet_file_that_is_written_anew_has_not_changed_and_one_with_another_cell_has(
    folder: DatasetFolder,
) -> None:
    path = folder.public / NAME
    table, before = pq.read_table(path), path.read_bytes()
    pq.write_table(table, path, compression="gzip", row_group_size=1)
    assert path.read_bytes() != before
    assert changed(folder) == []
    pq.write_table(table.take(list(range(len(table) - 1, -1, -1))), path)
    assert changed(folder) == [f"public/{NAME}"]
    path.write_bytes(before[:-10])
    assert changed(folder) == [f"public/{NAME}"]


@pytest.mark.parametrize("known", ["0" * 32, "as found"])
def test_a_published_sum_of_parquet_bytes_refuses_nothing(known: str) -> None:
    found = checksums_of(prepared(ID))
    facts = Checksums(None, {**found.public, NAME: found.public[NAME] if known == "as found" else known})
    check_known(replace(registry.get(ID), checksums=facts), found)


def test_a_known_sum_of_a_content_refuses_another_one() -> None:
    facts = Checksums(None, {NAME: f"{CONTENT}0"})
    with pytest.raises(DataProblem, match=f"public/{NAME} does not match"):
        check_known(replace(registry.get(ID), checksums=facts), checksums_of(prepared(ID)))
