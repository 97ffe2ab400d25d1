"""Samples that an older engine took are read, and an old file takes newer ones."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mlebench_console.state.records import UsageSample
from mlebench_console.state.usage.samples import DATABASE_NAME, Samples

OLD = UsageSample(1, 2.0, 50.0, 100, 200, 3)
NEW = UsageSample(1, 3.0, 60.0, 110, 210, 4, 75.0, 9000, 12)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / DATABASE_NAME)
    connection.execute(
        "CREATE TABLE usage (attempt_id INTEGER NOT NULL, at REAL NOT NULL, cpu_percent REAL, memory_bytes INTEGER,"
        " disk_bytes INTEGER, processes INTEGER, PRIMARY KEY (attempt_id, at)) WITHOUT ROWID, STRICT"
    )
    connection.execute("INSERT INTO usage VALUES (1, 2.0, 50.0, 100, 200, 3)")
    connection.commit()
    connection.close()
    return tmp_path


def test_a_reader_of_an_old_file_finds_what_was_not_measured_unknown(old: Path) -> None:
    samples = Samples(old, writable=False)
    assert samples.of_attempt(1) == [OLD] and samples.latest() == {1: OLD}
    samples.close()


def test_an_old_file_takes_newer_samples(old: Path) -> None:
    samples = Samples(old, writable=True)
    samples.add([NEW])
    assert samples.of_attempt(1) == [OLD, NEW] and samples.latest() == {1: NEW}
    samples.close()
    again = Samples(old, writable=True)
    assert again.of_attempt(1) == [OLD, NEW]
    again.close()


def test_a_new_file_holds_everything(tmp_path: Path) -> None:
    samples = Samples(tmp_path, writable=True)
    samples.add([NEW, OLD])
    samples.close()
    reader = Samples(tmp_path, writable=False)
    assert reader.of_attempt(1) == [OLD, NEW]
    reader.close()
