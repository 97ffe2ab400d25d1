"""Resource samples are kept in a file of their own, which is replaced where it can't be used."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.state.usage.samples import DATABASE_NAME, DamagedSamples, Samples

FIRST = UsageSample(2.0, 50.0, 100, 200, 3)
SECOND = UsageSample(3.0, 60.0, 110, 210, 4, 75.0, 9000, 12)


def test_samples_are_read_as_they_were_added(tmp_path: Path) -> None:
    samples = Samples(tmp_path, writable=True)
    samples.add(1, [SECOND, FIRST])
    samples.close()
    reader = Samples(tmp_path, writable=False)
    assert reader.of_attempt(1) == [FIRST, SECOND] and reader.latest() == {1: SECOND}
    reader.close()


def test_a_file_with_other_columns_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / DATABASE_NAME) as other:
        other.execute("CREATE TABLE usage (attempt_id INTEGER, at REAL)")
    other.close()
    samples = Samples(tmp_path, writable=True)
    with pytest.raises(DamagedSamples):
        samples.add(1, [FIRST])
    samples.add(1, [FIRST])
    assert samples.of_attempt(1) == [FIRST]
    samples.close()
    assert list(tmp_path.glob(f"{DATABASE_NAME}.damaged-*"))
