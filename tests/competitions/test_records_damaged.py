"""Raw records and archives that are damaged or incomplete are refused by name, and nothing is left behind."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import py7zr
import pytest

from mlebench_console.competitions.model import Edition
from tests.competitions.changed_raw import refused
from tests.conformance.trees import VECTORS, Vector, unpack_tar

FILES = {
    "AI4Code": ["train_orders.csv", "train_ancestors.csv"],
    "bms-molecular-translation": ["train_labels.csv"],
    "cdiscount-image-classification-challenge": ["train.bson"],
    "denoising-dirty-documents": ["train.zip", "train_cleaned.zip"],
    "herbarium-2020-fgvc7": ["nybg2020/train/metadata.json"],
    "herbarium-2021-fgvc8": ["train/metadata.json"],
    "herbarium-2022-fgvc9": ["train_metadata.json"],
    "inaturalist-2019-fgvc6": ["train2019.json", "train_val2019.tar.gz"],
    "invasive-species-monitoring": ["train_labels.csv.zip"],
    "iwildcam-2019-fgvc6": ["train.csv", "train_images.zip"],
    "iwildcam-2020-fgvc7": ["iwildcam2020_train_annotations.json", "iwildcam2020_test_information.json"],
    "mlsp-2013-birds": ["mlsp_contest_dataset.zip"],
    "statoil-iceberg-classifier-challenge": ["train.json.7z", "test.json.7z"],
    "tensorflow-speech-recognition-challenge": ["train.7z"],
    "the-icml-2013-whale-challenge-right-whale-redux": ["train2.zip"],
    "whale-categorization-playground": ["train.csv"],
}
COPIED = {
    "bms-molecular-translation": "extra_approved_InChIs.csv",
    "cdiscount-image-classification-challenge": "category_names.csv",
    "inaturalist-2019-fgvc6": "val2019.json",
    "iwildcam-2020-fgvc7": "iwildcam2020_megadetector_results.json",
}
IMAGES = {
    "AI4Code": "train/*.json",
    "bms-molecular-translation": "train/*/*/*/*.png",
    "herbarium-2020-fgvc7": "nybg2020/train/images/*/*/*.jpg",
    "herbarium-2021-fgvc8": "train/images/*/*/*.jpg",
    "herbarium-2022-fgvc9": "train_images/*/*/*.jpg",
    "iwildcam-2020-fgvc7": "train/*.jpg",
    "whale-categorization-playground": "train/*.jpg",
}


@pytest.mark.parametrize(
    ("competition_id", "name"), [(one, name) for one, names in FILES.items() for name in names]
)
def test_a_file_that_is_missing_cut_or_empty_is_named(competition_id: str, name: str, tmp_path: Path) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    whole = (raw / name).read_bytes()
    cut = whole[: len(whole.splitlines()[0]) // 2] if name.endswith(".csv") else whole[:-40]
    for content in (b"", cut):
        (raw / name).write_bytes(content)
        assert Path(name).name in refused(competition_id, raw, tmp_path)
    (raw / name).unlink()
    assert Path(name).name in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize(("competition_id", "name"), COPIED.items())
def test_a_file_that_is_handed_on_must_be_there_and_not_empty(
    competition_id: str, name: str, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    (raw / name).write_bytes(b"")
    assert name in refused(competition_id, raw, tmp_path)
    (raw / name).unlink()
    assert name in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize("edition", ["v1", "corrected"])
@pytest.mark.parametrize(("competition_id", "pattern"), IMAGES.items())
def test_a_missing_image_is_named(
    competition_id: str, pattern: str, edition: Edition, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    image = sorted(raw.glob(pattern))[0]
    image.unlink()
    assert image.name in refused(competition_id, raw, tmp_path, edition)


@pytest.mark.parametrize(
    ("competition_id", "edition", "named"),
    [
        ("tensorflow-speech-recognition-challenge", "corrected", "train.7z"),
        ("invasive-species-monitoring", "corrected", "train.7z"),
        ("statoil-iceberg-classifier-challenge", "v1", "train.json"),
    ],
)
def test_an_archive_without_the_files_is_named(
    competition_id: str, edition: Edition, named: str, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    path = next(raw.glob("train*.7z"))
    path.unlink()
    (tmp_path / "other").write_text("other")
    with py7zr.SevenZipFile(path, "w") as archive:
        archive.write(tmp_path / "other", "train/other.txt")
    assert named in refused(competition_id, raw, tmp_path, edition)


def test_a_photo_that_the_tar_lacks_is_named(tmp_path: Path) -> None:
    competition_id = "inaturalist-2019-fgvc6"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    name = json.loads((raw / "train2019.json").read_text())["images"][0]["file_name"]
    unpack_tar(raw / "train_val2019.tar.gz", tmp_path)
    (tmp_path / name).unlink()
    (raw / "train_val2019.tar.gz").unlink()
    with tarfile.open(raw / "train_val2019.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "train_val2019", "train_val2019")
    assert f"{name} is missing" in refused(competition_id, raw, tmp_path)
    (tmp_path / "train_val2019").rename(raw / "train_val2019")
    assert f"{Path(name).name} is missing" in refused(competition_id, raw, tmp_path)


def test_plants_in_folders_of_other_species_are_told(tmp_path: Path) -> None:
    competition_id = "herbarium-2020-fgvc7"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    path = raw / "nybg2020/train/metadata.json"
    document = json.loads(path.read_text(encoding="latin-1"))
    document["images"][3]["file_name"] = "images/999/99/1.jpg"
    path.write_text(json.dumps(document))
    assert "images/999/99/1.jpg does not lie in" in refused(competition_id, raw, tmp_path)


def test_a_document_with_a_further_field_is_told(tmp_path: Path) -> None:
    competition_id = "herbarium-2020-fgvc7"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    path = raw / "nybg2020/train/metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="latin-1")), "more": 1}))
    assert "it has an unknown field 'more'" in refused(competition_id, raw, tmp_path)


def test_patches_that_lack_a_field_are_told(tmp_path: Path) -> None:
    competition_id = "statoil-iceberg-classifier-challenge"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    (raw / "train.json.7z").unlink()
    (tmp_path / "train.json").write_text('[{"id": "a", "band_1": [], "band_2": [], "is_iceberg": 1}]')
    with py7zr.SevenZipFile(raw / "train.json.7z", "w") as archive:
        archive.write(tmp_path / "train.json", "data/processed/train.json")
    assert "train.json is not in the expected form" in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize("name", ["train_orders.csv", "train_ancestors.csv"])
def test_a_table_of_notebooks_that_is_cut_between_lines_is_named(name: str, tmp_path: Path) -> None:
    raw = Vector(VECTORS / "AI4Code").unpack_raw(tmp_path / "raw")
    lines = (raw / name).read_bytes().splitlines(keepends=True)
    (raw / name).write_bytes(b"".join(lines[: len(lines) // 2]))
    assert f"{name} is incomplete" in refused("AI4Code", raw, tmp_path)


@pytest.mark.parametrize(
    ("competition_id", "name"),
    [
        ("aerial-cactus-identification", "train.csv"),
        ("detecting-insults-in-social-commentary", "test_with_solutions.csv"),
        ("leaf-classification", "train.csv.zip"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe,1\n", b'a,b\n"1\n'])
def test_a_table_that_is_no_table_is_named(
    competition_id: str, name: str, content: bytes, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    (raw / name).write_bytes(content)
    assert name in refused(competition_id, raw, tmp_path)


def test_a_missing_cover_is_named_although_no_other_file_needs_it(tmp_path: Path) -> None:
    raw = Vector(VECTORS / "alaska2-image-steganalysis").unpack_raw(tmp_path / "raw")
    (raw / "Cover" / "00001.jpg").unlink()
    assert "Cover/00001.jpg is missing" in refused("alaska2-image-steganalysis", raw, tmp_path)


def test_a_missing_file_of_records_is_named_because_others_would_become_test(tmp_path: Path) -> None:
    raw = Vector(VECTORS / "cassava-leaf-disease-classification").unpack_raw(tmp_path / "raw")
    next((raw / "train_tfrecords").glob("ld_train03-*")).unlink()
    told = refused("cassava-leaf-disease-classification", raw, tmp_path)
    assert "ld_train03-*.tfrec is missing" in told


@pytest.mark.parametrize(
    ("competition_id", "pattern"),
    [
        ("freesound-audio-tagging-2019", "test/*.wav"),
        ("freesound-audio-tagging-2019", "train_curated/*.wav"),
        ("freesound-audio-tagging-2019", "train_noisy/*.wav"),
        ("freesound-audio-tagging-2019", "train_noisy.csv"),
        ("google-research-identify-contrails-reduce-global-warming", "validation/*/band_12.npy"),
    ],
)
def test_a_file_that_is_missing_from_a_folder_brought_as_a_whole_is_named(
    competition_id: str, pattern: str, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    path = next(raw.glob(pattern))
    path.unlink()
    assert f"{path.name} is missing" in refused(competition_id, raw, tmp_path)
