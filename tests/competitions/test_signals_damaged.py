"""Raw data of competitions of signals that are damaged or incomplete are refused by name; nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.competitions.changed_raw import refused
from tests.conformance.trees import VECTORS, Vector

TABLES = {
    "freesound-audio-tagging-2019": "sample_submission.csv",
    "hms-harmful-brain-activity-classification": "train.csv",
    "multi-modal-gesture-recognition": "training.csv",
    "nfl-player-contact-detection": "train_labels.csv",
    "osic-pulmonary-fibrosis-progression": "train.csv",
    "predict-volcanic-eruptions-ingv-oe": "train.csv",
}
RECORDS = {
    "icecube-neutrinos-in-deep-ice": "train_meta.parquet",
    "ml2021spring-hw2": "timit_11/timit_11/train_11.npy",
    "multi-modal-gesture-recognition": "training4.tar.gz",
    "stanford-covid-vaccine": "train.json",
    "tensorflow2-question-answering": "simplified-nq-train.jsonl",
}
FILES = {
    "hms-harmful-brain-activity-classification": "train_eegs/*.parquet",
    "icecube-neutrinos-in-deep-ice": "train/batch_*.parquet",
    "ml2021spring-hw2": "timit_11/timit_11/test_11.npy",
    "multi-modal-gesture-recognition": "valid_all_files_combined.7z",
    "nfl-player-contact-detection": "train/*_All29.mp4",
    "predict-volcanic-eruptions-ingv-oe": "train/*.csv",
    "smartphone-decimeter-2022": "metadata",
    "stanford-covid-vaccine": "test.json",
}


def unpacked(competition_id: str, folder: Path) -> Path:
    return Vector(VECTORS / competition_id).unpack_raw(folder / "raw")


@pytest.mark.parametrize(("competition_id", "name"), TABLES.items())
def test_a_table_that_is_missing_cut_or_garbled_is_named(
    competition_id: str, name: str, tmp_path: Path
) -> None:
    raw = unpacked(competition_id, tmp_path)
    whole = (raw / name).read_bytes()
    for content in (b"", whole[: len(whole.splitlines()[0]) // 2], b"\xff\xfe" + whole, whole + b"a,b" * 99):
        (raw / name).write_bytes(content)
        assert name in refused(competition_id, raw, tmp_path)
    (raw / name).unlink()
    assert name in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize(("competition_id", "name"), RECORDS.items())
def test_records_that_are_missing_cut_or_garbled_are_named(
    competition_id: str, name: str, tmp_path: Path
) -> None:
    raw = unpacked(competition_id, tmp_path)
    whole = (raw / name).read_bytes()
    for content in (b"garbled", whole[: len(whole) * 2 // 3 + 7], b"\x00" * 50 + whole):
        (raw / name).write_bytes(content)
        assert Path(name).name in refused(competition_id, raw, tmp_path)
    (raw / name).unlink()
    assert Path(name).name in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize(("competition_id", "pattern"), FILES.items())
def test_a_missing_file_is_named(competition_id: str, pattern: str, tmp_path: Path) -> None:
    raw = unpacked(competition_id, tmp_path)
    path = sorted(raw.glob(pattern))[0]
    path.rename(tmp_path / "elsewhere")
    assert path.name in refused(competition_id, raw, tmp_path)


def test_a_missing_scan_of_a_patient_is_named(tmp_path: Path) -> None:
    raw = unpacked("osic-pulmonary-fibrosis-progression", tmp_path)
    patient = sorted((raw / "train").iterdir())[0]
    patient.rename(tmp_path / "elsewhere")
    assert f"{patient.name} is missing" in refused("osic-pulmonary-fibrosis-progression", raw, tmp_path)


def test_drives_without_any_true_track_are_refused(tmp_path: Path) -> None:
    raw = unpacked("smartphone-decimeter-2022", tmp_path)
    for track in raw.rglob("ground_truth.csv"):
        track.unlink()
    assert "ground_truth.csv" in refused("smartphone-decimeter-2022", raw, tmp_path)


@pytest.mark.parametrize("column", ["UnixTimeMillis", "LatitudeDegrees"])
def test_a_track_without_a_column_is_named(column: str, tmp_path: Path) -> None:
    raw = unpacked("smartphone-decimeter-2022", tmp_path)
    for track in raw.rglob("ground_truth.csv"):
        track.write_text(track.read_text().replace(column, "gone"))
    message = refused("smartphone-decimeter-2022", raw, tmp_path)
    assert "ground_truth.csv" in message
    assert column in message


def test_clips_that_are_not_those_of_the_labels_are_told(tmp_path: Path) -> None:
    raw = unpacked("freesound-audio-tagging-2019", tmp_path)
    sample = raw / "sample_submission.csv"
    sample.write_text("\n".join(sample.read_text().splitlines()[:-1]) + "\n")
    assert "sample_submission.csv" in refused("freesound-audio-tagging-2019", raw, tmp_path)


def test_molecules_of_unequal_length_are_refused(tmp_path: Path) -> None:
    raw = unpacked("stanford-covid-vaccine", tmp_path)
    text = (raw / "train.json").read_text()
    (raw / "train.json").write_text(text.replace('"seq_scored": 13', '"seq_scored": 21'))
    assert "train.json" in refused("stanford-covid-vaccine", raw, tmp_path)


def test_a_block_of_a_single_line_is_refused(tmp_path: Path) -> None:
    raw = unpacked("tensorflow2-question-answering", tmp_path)
    path = raw / "simplified-nq-train.jsonl"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert "1 rows cannot be split" in refused("tensorflow2-question-answering", raw, tmp_path)


def test_windows_of_other_lengths_than_labels_are_refused(tmp_path: Path) -> None:
    raw = unpacked("ml2021spring-hw2", tmp_path)
    np.save(raw / "timit_11/timit_11/train_label_11.npy", np.array(["1"]))
    assert "train_label_11.npy" in refused("ml2021spring-hw2", raw, tmp_path)


@pytest.mark.parametrize(
    ("competition_id", "name", "key"),
    [
        ("stanford-covid-vaccine", "train.json", "SN_filter"),
        ("stanford-covid-vaccine", "train.json", "deg_50C"),
        ("stanford-covid-vaccine", "test.json", "seq_length"),
        ("tensorflow2-question-answering", "simplified-nq-train.jsonl", "example_id"),
        ("tensorflow2-question-answering", "simplified-nq-train.jsonl", "annotations"),
        ("tensorflow2-question-answering", "simplified-nq-train.jsonl", "question_text"),
        ("tensorflow2-question-answering", "simplified-nq-train.jsonl", "long_answer"),
        ("tensorflow2-question-answering", "simplified-nq-train.jsonl", "short_answers"),
    ],
)
def test_records_without_a_key_are_named(competition_id: str, name: str, key: str, tmp_path: Path) -> None:
    raw = unpacked(competition_id, tmp_path)
    (raw / name).write_text((raw / name).read_text().replace(f'"{key}"', '"gone"'))
    assert name in refused(competition_id, raw, tmp_path)


def test_too_few_molecules_of_good_quality_are_told(tmp_path: Path) -> None:
    raw = unpacked("stanford-covid-vaccine", tmp_path)
    text = (raw / "train.json").read_text()
    (raw / "train.json").write_text(text.replace('"SN_filter": 1.0', '"SN_filter": 0.0'))
    assert "0 are of good quality" in refused("stanford-covid-vaccine", raw, tmp_path)
