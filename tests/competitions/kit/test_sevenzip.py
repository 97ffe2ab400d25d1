"""Members of 7z archives get straight to their places, and what is damaged or missing is named."""

from __future__ import annotations

from pathlib import Path

import py7zr
import pytest

from mlebench_console.competitions.kit.archives import sevenzip
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

CONTENT = {"all/a.wav": b"a" * 70_000, "all/deep/b.wav": b"b", "all/empty.wav": b""}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    source = tmp_path / "source" / "all"
    (source / "deep").mkdir(parents=True)
    for name, content in CONTENT.items():
        (tmp_path / "source" / name).write_bytes(content)
    (source / "link.wav").symlink_to("a.wav")
    with py7zr.SevenZipFile(tmp_path / "raw.7z", "w") as made:
        made.writeall(source, "all")
    return tmp_path / "raw.7z"


def test_files_are_listed_without_folders_and_links(archive: Path) -> None:
    assert sorted(sevenzip.files_in(archive)) == sorted(CONTENT)


def test_members_get_straight_to_their_places(archive: Path, make_job: MakeJob, tmp_path: Path) -> None:
    targets = {name: tmp_path / "to" / f"{number}.wav" for number, name in enumerate(CONTENT)}
    sevenzip.extract_as(make_job(), archive, targets)
    assert {name: path.read_bytes() for name, path in targets.items()} == CONTENT
    assert len(list((tmp_path / "to").iterdir())) == len(CONTENT)


def test_files_come_into_being_in_the_order_asked_for(
    archive: Path, make_job: MakeJob, tmp_path: Path, created: list[str]
) -> None:
    targets = {name: tmp_path / "to" / f"{number}.wav" for number, name in enumerate(reversed(CONTENT))}
    sevenzip.extract_as(make_job(), archive, targets)
    assert created == ["0.wav", "1.wav", "2.wav"]


def test_one_file_is_found_in_any_folder_and_read_as_far_as_it_is_wanted(archive: Path) -> None:
    assert sevenzip.read(archive, "b.wav") == b"b"
    assert sevenzip.read(archive, "a.wav") == CONTENT["all/a.wav"]
    assert sevenzip.read(archive, "all/empty.wav") == b""
    assert sevenzip.read(archive, "a.wav", most=7) == b"a" * 7


@pytest.mark.parametrize("name", ["all/gone.wav", "all/link.wav"])
def test_what_is_no_file_of_the_archive_is_named(
    name: str, archive: Path, make_job: MakeJob, tmp_path: Path
) -> None:
    with pytest.raises(DataProblem, match=f"{name} is missing"):
        sevenzip.extract_as(make_job(), archive, {name: tmp_path / "x"})
    with pytest.raises(DataProblem, match=f"{name} is missing"):
        sevenzip.read(archive, name)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "zip"])
def test_a_damaged_archive_is_named(damage: str, archive: Path, make_job: MakeJob, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    flipped = whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:]
    archive.write_bytes(
        {"cut": whole[:-30], "flipped": flipped, "empty": b"", "zip": b"PK\3\4" + whole}[damage]
    )
    with pytest.raises(DataProblem, match=r"raw\.7z cannot be read as a 7z"):
        sevenzip.extract_as(make_job(), archive, {"all/a.wav": tmp_path / "x"})
    with pytest.raises(DataProblem, match=r"raw\.7z cannot be read as a 7z"):
        sevenzip.read(archive, "a.wav", most=7)


@pytest.mark.parametrize("compressed", [True, False])
def test_made_archives_hold_what_they_are_told(compressed: bool, make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"a" * 50_000)
    target = tmp_path / "made" / "x.7z"
    contents: dict[str, Path | bytes] = {"train/1.jpg": tmp_path / "a.jpg", "0.json": b"{}"}
    sevenzip.pack(make_job(), target, contents, compressed=compressed)
    assert sevenzip.files_in(target) == ["0.json", "train/1.jpg"]
    assert sevenzip.read(target, "1.jpg") == b"a" * 50_000
    assert sevenzip.read(target, "0.json") == b"{}"
    assert (target.stat().st_size < 50_000) == compressed
    assert not (tmp_path / "a.jpg").exists()
