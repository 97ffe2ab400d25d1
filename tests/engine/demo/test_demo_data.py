"""Demo data are the same everywhere, appear whole or not at all, and are taken by the real preparation."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from engine import grade_submission, prepare_competition
from engine.demo_data import DEMO_COMPETITIONS, cactus, generate, leaves
from foundation.problems import UsageProblem


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(autouse=True)
def fewer_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cactus, "LABELLED", 300)
    monkeypatch.setattr(cactus, "UNLABELLED", 40)


@pytest.mark.parametrize("competition", DEMO_COMPETITIONS)
def test_they_are_prepared_by_the_real_code_and_hold_no_give_away(tmp_path: Path, competition: str) -> None:
    raw, data = tmp_path / "raw", tmp_path / "data"
    generate(competition, raw)
    assert sum(path.stat().st_size for path in raw.iterdir()) < 12 << 20
    prepared = prepare_competition(competition, raw=raw, data_dir=data)
    sample = next((prepared / "public").glob("sample_submission*.csv"))
    report = grade_submission(sample, competition, data_dir=data)
    assert report.valid_submission, report.message
    assert not report.above_median


@pytest.mark.parametrize("competition", DEMO_COMPETITIONS)
def test_they_are_the_same_bytes_each_time(tmp_path: Path, competition: str) -> None:
    generate(competition, tmp_path / "one")
    generate(competition, tmp_path / "two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_a_folder_that_is_there_is_whole_and_stays(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "mine").write_text("kept")
    generate("spaceship-titanic", tmp_path / "raw")
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["mine"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(leaves, "write_zip", fail)
    with pytest.raises(OSError, match="disk full"):
        generate("leaf-classification", tmp_path / "raw")
    assert list(tmp_path.iterdir()) == []


def test_other_competitions_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no demo data for 'AI4Code'"):
        generate("AI4Code", tmp_path / "raw")
