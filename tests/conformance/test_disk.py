"""What lies on the disk for a while only is seen, wherever it lies; otherwise no preparation would be found out."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.conformance.disk import watched


def test_what_was_there_for_a_while_counts(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(7000))
    with watched(tmp_path) as disk:
        (tmp_path / "copy").write_bytes(bytes(1000))
        (tmp_path / "link").hardlink_to(tmp_path / "copy")
        (tmp_path / "made").write_bytes(bytes(500))
        (tmp_path / "copy").unlink()
        (tmp_path / "link").rename(tmp_path / "made")
    assert disk.peak == 1500
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 8000
    assert not disk.elsewhere


def test_folders_that_were_there_for_a_while_count(tmp_path: Path) -> None:
    with watched(tmp_path) as disk:
        (tmp_path / "scratch").mkdir()
        for name in "abc":
            (tmp_path / "scratch" / name).write_bytes(bytes(100))
        shutil.rmtree(tmp_path / "scratch")
    assert disk.peak == 300


def test_what_is_written_elsewhere_or_without_a_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with watched(tmp_path / "data") as disk:
        (tmp_path / "data" / "mine").write_bytes(b"1")
        (tmp_path / "elsewhere").write_bytes(b"1")
        tempfile.TemporaryFile(dir=tmp_path / "data").close()
    assert {Path(path) for path in disk.elsewhere} == {tmp_path / "elsewhere", tmp_path / "data"}
