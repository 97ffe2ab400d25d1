"""Mended defects of medical pictures: patients and equal pictures on both sides, labels told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.kit.formats import tfrecords
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    assert_kept_together,
    from_answers,
    grade_in_both,
    mends,
    sample,
    table,
)
from tests.competitions.prepared import prepared

APTOS = "aptos2019-blindness-detection"
MELANOMA = "siim-isic-melanoma-classification"
RANZCR = "ranzcr-clip-catheter-line-classification"
SPINE = "rsna-2022-cervical-spine-fracture-detection"


def equal_pictures(folder: str, many: int) -> Callable[[Path], None]:
    """A change of raw data after which several pictures in the folder have the same bytes."""

    def change(raw: Path) -> None:
        for number, picture in enumerate(sorted((raw / folder).iterdir())):
            picture.write_bytes(b"picture %d" % (number % many))

    return change


@pytest.mark.parametrize(
    ("competition_id", "raw_folder", "parts"),
    [
        pytest.param(
            APTOS,
            "train_images",
            ("train_images", "test_images"),
            marks=mends(APTOS, "equal-photographs-apart"),
        ),
        pytest.param(
            MELANOMA,
            "jpeg/train",
            ("jpeg/train", "jpeg/test"),
            marks=mends(MELANOMA, "patients-and-duplicates-apart"),
        ),
    ],
)
def test_equal_pictures_stay_on_one_side(
    competition_id: str, raw_folder: str, parts: tuple[str, str], tmp_path: Path
) -> None:
    def pictures(edition: Edition) -> tuple[set[bytes], set[bytes]]:
        folder = prepared_after(equal_pictures(raw_folder, 30), competition_id, edition, tmp_path)
        train, test = (
            {picture.read_bytes() for picture in (folder / "public" / part).iterdir()} for part in parts
        )
        return train, test

    assert_kept_together(pictures)


@mends(MELANOMA, "patients-and-duplicates-apart")
def test_patients_with_several_lesions_stay_on_one_side(tmp_path: Path) -> None:
    def share_patients(raw: Path) -> None:
        lesions = pd.read_csv(raw / "train.csv")
        lesions["patient_id"] = [f"IP_{number % 20}" for number in range(len(lesions))]
        lesions.to_csv(raw / "train.csv", index=False)

    def patients(edition: Edition) -> tuple[set[str], set[str]]:
        public = prepared_after(share_patients, MELANOMA, edition, tmp_path) / "public"
        train, test = (set(pd.read_csv(public / f"{part}.csv")["patient_id"]) for part in ("train", "test"))
        return train, test

    assert_kept_together(patients)


@mends(MELANOMA, "labels-in-the-test-records")
def test_melanoma_records_that_tell_labels_are_left_out() -> None:
    held_out = answers(MELANOMA, "v1").set_index("image_name")["target"]
    told: set[str] = set()
    for name in ("test00-2071.tfrec", "test01-2071.tfrec"):
        path = prepared(MELANOMA, "v1") / "public" / "tfrecords" / name
        for content in tfrecords.records(path):
            assert b"target" in content
        told |= set(tfrecords.texts(path, "image_name"))
    assert told == set(held_out.index)
    public = prepared(MELANOMA, "corrected") / "public"
    assert not [path for path in public.rglob("*") if "tfrec" in path.name]
    assert not {"target", "diagnosis", "benign_malignant"} & set(pd.read_csv(public / "test.csv").columns)


@mends(RANZCR, "patients-in-both-parts")
def test_x_rayed_patients_stay_on_one_side() -> None:
    def patients(edition: Edition) -> tuple[set[str], set[str]]:
        train, test = (table(RANZCR, edition, name) for name in ("public/train.csv", "private/test.csv"))
        rows.append(len(train) + len(test))
        return set(train["PatientID"]), set(test["PatientID"])

    rows: list[int] = []
    assert_kept_together(patients)
    assert rows[0] == rows[1]


@mends(RANZCR, "two-findings-left-out")
@pytest.mark.parametrize("finding", ["CVC - Normal", "Swan Ganz Catheter Present"])
def test_all_eleven_findings_are_asked_for_and_scored(finding: str, tmp_path: Path) -> None:
    assert len(sample(RANZCR, "v1").columns) == 1 + 9
    assert len(sample(RANZCR, "corrected").columns) == 1 + 11
    swapped = from_answers(RANZCR, finding, lambda truth: 1 - truth[finding])
    v1, corrected = grade_in_both(RANZCR, swapped, tmp_path)
    assert v1.score == 1
    assert corrected.score == pytest.approx(10 / 11)
    v1, corrected = grade_in_both(
        RANZCR, lambda edition: answers(RANZCR, edition).drop(columns=finding), tmp_path
    )
    assert v1.score == 1
    assert corrected.message.startswith(f"Column {finding!r} is missing")


@mends(SPINE, "split-is-inverted")
def test_a_tenth_of_the_spines_is_test_and_the_others_are_told_whole() -> None:
    counts = {
        edition: [len(table(SPINE, edition, f"public/{name}.csv")) for name in ("train", "test")]
        for edition in EDITIONS
    }
    studies = counts["v1"][0] + counts["v1"][1] // 8
    assert counts["v1"][0] == round(studies * 0.1)
    assert counts["corrected"] == [studies - -(-studies // 10), 8 * -(-studies // 10)]
    boxes, segmented = {}, {}
    for edition in EDITIONS:
        train = set(table(SPINE, edition, "public/train.csv")["StudyInstanceUID"])
        boxes[edition] = table(SPINE, edition, "public/train_bounding_boxes.csv")["StudyInstanceUID"]
        folder = prepared(SPINE, edition) / "public" / "segmentations"
        segmented[edition] = {path.stem for path in folder.iterdir()}
        assert segmented[edition] | set(boxes[edition]) <= train
    assert len(boxes["corrected"]) > len(boxes["v1"])
    assert len(segmented["corrected"]) > len(segmented["v1"])


@mends(SPINE, "test-studies-can-be-looked-up")
def test_test_spines_have_names_that_nobody_can_look_up() -> None:
    known = {
        name for edition in EDITIONS for name in table(SPINE, edition, "public/train.csv")["StudyInstanceUID"]
    }
    known |= set(table(SPINE, "v1", "public/test.csv")["StudyInstanceUID"])
    assert known >= {path.name for path in (prepared(SPINE, "v1") / "public" / "test_images").iterdir()}
    public = prepared(SPINE, "corrected") / "public"
    shown = {path.name for path in (public / "test_images").iterdir()}
    assert shown == set(table(SPINE, "corrected", "public/test.csv")["StudyInstanceUID"])
    assert not shown & known


@mends(SPINE, "test-studies-can-be-looked-up")
def test_headers_of_test_spines_tell_neither_their_old_name_nor_the_number_that_ends_it(
    tmp_path: Path,
) -> None:
    def study(name: str) -> bytes:
        value = name.encode() + b"\0" * (len(name) % 2)
        return b"\x20\0\x0d\0UI" + len(value).to_bytes(2, "little") + value

    def patient(name: str) -> bytes:
        number = name.rpartition(".")[2]
        value = number.encode() + b" " * (len(number) % 2)
        return b"\x10\0\x20\0LO" + len(value).to_bytes(2, "little") + value

    def add_names(raw: Path) -> None:
        for scan in (raw / "train_images").rglob("*.dcm"):
            scan.write_bytes(scan.read_bytes() + study(scan.parent.name) + patient(scan.parent.name))

    names = {
        name
        for part in ("test", "train")
        for name in table(SPINE, "v1", f"public/{part}.csv")["StudyInstanceUID"]
    }
    tells: dict[Edition, bool] = {"v1": True, "corrected": False}
    for edition, told in tells.items():
        public = prepared_after(add_names, SPINE, edition, tmp_path) / "public"
        scans = [scan.read_bytes() for scan in (public / "test_images").rglob("*.dcm")]
        for secrets in ([patient(name) for name in names], [name.encode() for name in names]):
            assert {any(secret in content for secret in secrets) for content in scans} == {told}
