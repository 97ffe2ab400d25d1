"""Raw data of image competitions that are damaged or incomplete are refused by name, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.competitions.model import Edition
from tests.competitions.changed_raw import refused
from tests.conformance.trees import VECTORS, Vector

TABLES = {
    "aptos2019-blindness-detection": "train.csv",
    "cassava-leaf-disease-classification": "train.csv",
    "dog-breed-identification": "labels.csv",
    "histopathologic-cancer-detection": "train_labels.csv",
    "hotel-id-2021-fgvc8": "train.csv",
    "imet-2020-fgvc7": "train.csv",
    "paddy-disease-classification": "train.csv",
    "petfinder-pawpularity-score": "train.csv",
    "plant-pathology-2020-fgvc7": "train.csv",
    "plant-pathology-2021-fgvc8": "train.csv",
    "ranzcr-clip-catheter-line-classification": "train.csv",
    "rsna-2022-cervical-spine-fracture-detection": "train.csv",
    "rsna-breast-cancer-detection": "train.csv",
    "rsna-miccai-brain-tumor-radiogenomic-classification": "train_labels.csv",
    "seti-breakthrough-listen": "train_labels.csv",
    "siim-isic-melanoma-classification": "train.csv",
}
IMAGES = {
    "alaska2-image-steganalysis": "UERD/*.jpg",
    "aptos2019-blindness-detection": "train_images/*.png",
    "cassava-leaf-disease-classification": "train_images/*.jpg",
    "dog-breed-identification": "train/*.jpg",
    "histopathologic-cancer-detection": "train/*.tif",
    "hotel-id-2021-fgvc8": "train_images/*/*.jpg",
    "imet-2020-fgvc7": "train/*.png",
    "paddy-disease-classification": "train_images/*/*.jpg",
    "petfinder-pawpularity-score": "train/*.jpg",
    "plant-pathology-2020-fgvc7": "images/Train_*.jpg",
    "plant-pathology-2021-fgvc8": "train_images/*.jpg",
    "ranzcr-clip-catheter-line-classification": "train/*.jpg",
    "rsna-breast-cancer-detection": "train_images/*/*.dcm",
    "seti-breakthrough-listen": "train/*/*.npy",
    "siim-isic-melanoma-classification": "train/*.dcm",
}


@pytest.mark.parametrize(("competition_id", "name"), TABLES.items())
def test_a_table_that_is_missing_cut_or_garbled_is_named(
    competition_id: str, name: str, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    whole = (raw / name).read_bytes()
    for content in (b"", whole[: len(whole.splitlines()[0]) // 2], b"\xff\xfe" + whole, whole + b"a,b" * 99):
        (raw / name).write_bytes(content)
        assert name in refused(competition_id, raw, tmp_path)
    (raw / name).unlink()
    assert name in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize(("competition_id", "pattern"), IMAGES.items())
def test_a_missing_image_is_named(competition_id: str, pattern: str, tmp_path: Path) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    images = sorted(raw.glob(pattern))
    # of alaska's three hidden versions a test image needs one, so all of one kind are taken away
    gone = images if competition_id.startswith("alaska") else images[:1]
    for image in gone:
        image.unlink()
    assert images[0].suffix in refused(competition_id, raw, tmp_path)


def test_a_missing_patient_is_named(tmp_path: Path) -> None:
    competition_id = "rsna-miccai-brain-tumor-radiogenomic-classification"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    patient = sorted((raw / "train").iterdir())[0]
    patient.rename(raw / "elsewhere")
    assert f"{patient.name} is missing" in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize("edition", ["v1", "corrected"])
def test_a_missing_study_is_named(edition: Edition, tmp_path: Path) -> None:
    competition_id = "rsna-2022-cervical-spine-fracture-detection"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    for number, study in enumerate(sorted((raw / "train_images").iterdir())):
        study.rename(raw / f"elsewhere{number}")
    assert "is missing" in refused(competition_id, raw, tmp_path, edition)


@pytest.mark.parametrize(
    ("competition_id", "pattern"),
    [
        ("cassava-leaf-disease-classification", "train_tfrecords/*.tfrec"),
        ("siim-isic-melanoma-classification", "tfrecords/train00-*.tfrec"),
    ],
)
def test_a_damaged_record_file_is_named(competition_id: str, pattern: str, tmp_path: Path) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    for path in raw.glob(pattern):
        path.write_bytes(path.read_bytes()[:-3])
    assert ".tfrec is damaged" in refused(competition_id, raw, tmp_path)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    competition_id = "dogs-vs-cats-redux-kernels-edition"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    archive = raw / "train.zip"
    archive.write_bytes(archive.read_bytes()[:-40])
    assert "train.zip" in refused(competition_id, raw, tmp_path)
    archive.unlink()
    assert "train.zip" in refused(competition_id, raw, tmp_path)


def test_two_photos_of_one_name_are_told(tmp_path: Path) -> None:
    competition_id = "plant-seedlings-classification"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    for species in (raw / "train").iterdir():
        for number, photo in enumerate(sorted(species.iterdir())):
            photo.rename(species / f"{number}.png")
    assert "another raw file was placed at" in refused(competition_id, raw, tmp_path)
