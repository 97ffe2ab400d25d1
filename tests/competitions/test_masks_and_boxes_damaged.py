"""Raw data and answers of segmentation and detection that are damaged.

Raw data that are damaged or incomplete are refused by name, and nothing is left; for answers no submission is blamed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.competitions.changed_raw import refused
from tests.competitions.mended.editions import answers, judged_against, sample
from tests.conformance.trees import VECTORS, Vector

CONTRAILS = "google-research-identify-contrails-reduce-global-warming"
COVID = "siim-covid19-detection"
DRIVING = "3d-object-detection-for-autonomous-vehicles"
INK = "vesuvius-challenge-ink-detection"
KIDNEY = "hubmap-kidney-segmentation"
KUZUSHIJI = "kuzushiji-recognition"
SALT = "tgs-salt-identification-challenge"
SCANS = "uw-madison-gi-tract-image-segmentation"
XRAY = "vinbigdata-chest-xray-abnormalities-detection"

TABLES = [
    (COVID, "train_image_level.csv"),
    (COVID, "train_study_level.csv"),
    (DRIVING, "train.csv"),
    (DRIVING, "train_data/ego_pose.json"),
    (DRIVING, "train_data/sample_annotation.json"),
    (INK, "train/3/inklabels_rle.csv"),
    (KIDNEY, "HuBMAP-20-dataset_information.csv"),
    (KIDNEY, "train.csv"),
    (KUZUSHIJI, "train.csv"),
    (SALT, "depths.csv"),
    (SCANS, "train.csv"),
    (XRAY, "train.csv"),
    (CONTRAILS, "train_metadata.json"),
    (CONTRAILS, "validation_metadata.json"),
]
FILES = [
    (COVID, "train/*/*/*.dcm", "train/*"),
    (DRIVING, "train_lidar/*.bin", ""),
    (DRIVING, "train_data/visibility.json", ""),
    (DRIVING, "train_maps/*.png", ""),
    (INK, "train/3/ir.png", ""),
    (INK, "train/1", "train/1"),
    (KIDNEY, "train/*-anatomical-structure.json", ""),
    (KUZUSHIJI, "train_images.zip", ""),
    (KUZUSHIJI, "unicode_translation.csv", ""),
    (SALT, "competition_data.zip", ""),
    (SCANS, "train/case*", "train/case*"),
    (XRAY, "train/*.dicom", ""),
    (CONTRAILS, "train/*/band_12.npy", ""),
    (CONTRAILS, "validation", "validation"),
]


@pytest.mark.parametrize(("competition_id", "name"), TABLES)
def test_a_table_that_is_missing_cut_or_garbled_is_named(
    competition_id: str, name: str, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    whole = (raw / name).read_bytes()
    for content in (b"", whole[:3], b"\xff\xfe" + whole):
        (raw / name).write_bytes(content)
        assert Path(name).name in refused(competition_id, raw, tmp_path)
    (raw / name).unlink()
    assert Path(name).name in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize(("competition_id", "pattern", "folder"), FILES)
def test_what_is_missing_is_named(competition_id: str, pattern: str, folder: str, tmp_path: Path) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    gone = sorted(raw.glob(folder or pattern))
    assert gone
    for path in gone:
        path.rename(tmp_path / path.name)
    message = refused(competition_id, raw, tmp_path)
    assert any(path.name in message for path in gone)


@pytest.mark.parametrize(
    ("competition_id", "name"), [(KUZUSHIJI, "train_images.zip"), (SALT, "competition_data.zip")]
)
def test_a_zip_cut_short_is_named(competition_id: str, name: str, tmp_path: Path) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    (raw / name).write_bytes((raw / name).read_bytes()[:-40])
    assert name in refused(competition_id, raw, tmp_path)


def test_a_mask_cut_short_is_named(tmp_path: Path) -> None:
    raw = Vector(VECTORS / CONTRAILS).unpack_raw(tmp_path / "raw")
    for path in raw.glob("train/*/human_pixel_masks.npy"):
        path.write_bytes(path.read_bytes()[:-1])
    assert "human_pixel_masks.npy" in refused(CONTRAILS, raw, tmp_path)


def test_a_picture_without_a_size_is_named(tmp_path: Path) -> None:
    raw = Vector(VECTORS / INK).unpack_raw(tmp_path / "raw")
    (raw / "train/3/ir.png").write_bytes(b"not a picture, whatever its name says")
    assert "ir.png" in refused(INK, raw, tmp_path)


def test_a_strange_file_in_the_held_out_fragment_is_named(tmp_path: Path) -> None:
    raw = Vector(VECTORS / INK).unpack_raw(tmp_path / "raw")
    (raw / "train/3/labels.npz").write_bytes(b"")
    assert "labels.npz" in refused(INK, raw, tmp_path)


def test_a_slice_with_two_pictures_is_named(tmp_path: Path) -> None:
    raw = Vector(VECTORS / SCANS).unpack_raw(tmp_path / "raw")
    for path in list(raw.glob("train/*/*/scans/slice_0001_*.png")):
        (path.parent / "slice_0001_1_1_1_1.png").write_bytes(b"")
    assert "_slice_0001 has 2 image files" in refused(SCANS, raw, tmp_path)


def test_labels_that_cannot_be_read_are_named_by_their_page_or_sample(tmp_path: Path) -> None:
    for competition_id, column in ((KUZUSHIJI, "labels"), (DRIVING, "PredictionString")):
        raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / competition_id)
        header = (raw / "train.csv").read_text().splitlines()[0].split(",")
        ids = [line.split(",")[0] for line in (raw / "train.csv").read_text().splitlines()[1:]]
        rows = [",".join({header[0]: id_, column: "1 2 3"}[name] for name in header) for id_ in ids]
        (raw / "train.csv").write_text("\n".join([",".join(header), *rows]) + "\n")
        message = refused(competition_id, raw, tmp_path)
        assert any(id_ in message for id_ in ids)


def test_tables_that_refer_to_what_is_not_there_are_refused(tmp_path: Path) -> None:
    raw = Vector(VECTORS / DRIVING).unpack_raw(tmp_path / "raw")
    path = raw / "train_data/ego_pose.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:1]))
    assert "ego_pose.json is incomplete" in refused(DRIVING, raw, tmp_path)


@pytest.mark.parametrize(
    ("competition_id", "column"),
    [
        (CONTRAILS, "encoded_pixels"),
        (COVID, "PredictionString"),
        (DRIVING, "PredictionString"),
        (KIDNEY, "encoding"),
        (KUZUSHIJI, "labels"),
        (SALT, "rle_mask"),
        (SCANS, "predicted"),
    ],
)
def test_no_submission_is_blamed_for_damaged_answers(
    competition_id: str, column: str, tmp_path: Path
) -> None:
    damaged = answers(competition_id, "v1")
    assert column in damaged
    for judgement in judged_against(
        damaged.assign(**{column: "12 secret"}), sample(competition_id, "v1"), competition_id, tmp_path
    ):
        assert judgement.outcome == "grader_error"
        assert "secret" not in judgement.message
