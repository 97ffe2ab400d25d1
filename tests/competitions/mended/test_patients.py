"""Mended defects of medical pictures: labels told, findings left out, studies that can be looked up."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.kit.formats import tfrecords
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    from_answers,
    grade_in_both,
    mends,
    sample,
    table,
)
from tests.competitions.prepared import prepared

MELANOMA = "siim-isic-melanoma-classification"
RANZCR = "ranzcr-clip-catheter-line-classification"
SPINE = "rsna-2022-cervical-spine-fracture-detection"


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
