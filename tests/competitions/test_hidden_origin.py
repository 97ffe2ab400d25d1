"""Beside the bytes of public files agents see their order and times, which must not tell where they came from."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import py7zr
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.prepared import prepared


def listed(path: Path) -> list[tuple[str, object]]:
    """Name and time of each file in an archive, in its order."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as zipped:
            return [(info.filename, info.date_time) for info in zipped.infolist()]
    if path.suffix == ".7z":
        with py7zr.SevenZipFile(path) as packed:
            return [(info.filename, info.lastwritetime) for info in packed.files]
    with tarfile.open(path) as tarred:
        return [(member.name, member.mtime) for member in tarred.getmembers()]


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize(
    ("competition_id", "archive"),
    [
        ("aerial-cactus-identification", "test.zip"),
        ("dogs-vs-cats-redux-kernels-edition", "test.zip"),
        ("inaturalist-2019-fgvc6", "test2019.tar.gz"),
        ("invasive-species-monitoring", "test.7z"),
        ("iwildcam-2019-fgvc6", "test_images.zip"),
        ("kuzushiji-recognition", "test_images.zip"),
        ("the-icml-2013-whale-challenge-right-whale-redux", "test2.zip"),
    ],
)
def test_test_archives_are_in_the_order_of_their_names_and_of_one_time(
    competition_id: str, archive: str, edition: Edition
) -> None:
    members = listed(prepared(competition_id, edition) / "public" / archive)
    assert members
    assert members == sorted(members, key=lambda member: member[0])
    assert len({moment for _, moment in members}) == 1


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize(
    "competition_id",
    [
        "alaska2-image-steganalysis",
        "dogs-vs-cats-redux-kernels-edition",
        "herbarium-2022-fgvc9",
        "plant-seedlings-classification",
        "tensorflow-speech-recognition-challenge",
    ],
)
def test_public_files_are_of_one_time(competition_id: str, edition: Edition) -> None:
    files = [path for path in (prepared(competition_id, edition) / "public").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert len({path.stat().st_mtime_ns for path in files}) == 1
