"""Demo data are the same everywhere, appear whole or not at all, and are taken by the real preparation."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from mlebench_console import grade_submission, prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.engine.datasets.prepared import manifest
from mlebench_console.engine.datasets.prepared.verification import verify
from mlebench_console.engine.demo_data import DEMO_COMPETITIONS, cactus, generate, leaves
from mlebench_console.engine.layout import dataset_folder, is_demo
from mlebench_console.foundation.problems import UsageProblem


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


@pytest.mark.parametrize("zipped", [False, True])
def test_what_is_prepared_of_them_says_so_wherever_they_were_copied_to(tmp_path: Path, zipped: bool) -> None:
    generate("spaceship-titanic", tmp_path / "made")
    raw = tmp_path / "mine"
    shutil.copytree(tmp_path / "made", raw / "spaceship-titanic")
    if zipped:
        shutil.make_archive(str(raw / "spaceship-titanic"), "zip", raw / "spaceship-titanic")
        shutil.rmtree(raw / "spaceship-titanic")
    data = tmp_path / "data"
    prepare_competition("spaceship-titanic", raw=raw, data_dir=data)
    folder = dataset_folder(registry.get("spaceship-titanic"), data)
    listed = manifest.of_dataset(folder)
    assert is_demo(folder) and listed is not None and listed.properties == {"synthetic": "demo"}
    # It is compared with its manifest, and no known checksum of Kaggle's data is held against it.
    found = verify(registry.get("spaceship-titanic"), folder, deep=True)
    assert found.demo and not found.differences
    assert all(one.known is None for one in found.sums)
