"""Each defect that edition corrected mends, shown in both editions, for competitions with images by id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from competitions import registry
from competitions.kit import tfrecords
from competitions.model import EDITIONS, Edition
from engine import prepare_competition
from foundation.problems import UsageProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    from_answers,
    grade_in,
    grade_in_both,
    sample,
    scores_against,
    table,
    with_cell,
)
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector

ALASKA = "alaska2-image-steganalysis"
APTOS = "aptos2019-blindness-detection"
BREAST = "rsna-breast-cancer-detection"
CASSAVA = "cassava-leaf-disease-classification"
CATS = "dogs-vs-cats-redux-kernels-edition"
DOGS = "dog-breed-identification"
HOTEL = "hotel-id-2021-fgvc8"
IMET = "imet-2020-fgvc7"
LEAVES = "plant-pathology-2020-fgvc7"
LEAVES_2021 = "plant-pathology-2021-fgvc8"
MELANOMA = "siim-isic-melanoma-classification"
PADDY = "paddy-disease-classification"
PETS = "petfinder-pawpularity-score"
RANZCR = "ranzcr-clip-catheter-line-classification"
SEEDLINGS = "plant-seedlings-classification"
SETI = "seti-breakthrough-listen"
SPINE = "rsna-2022-cervical-spine-fracture-detection"
TISSUE = "histopathologic-cancer-detection"
TUMOUR = "rsna-miccai-brain-tumor-radiogenomic-classification"


@pytest.mark.parametrize(
    ("competition_id", "column", "value"),
    [
        (ALASKA, "Label", np.inf),
        (APTOS, "diagnosis", None),
        (APTOS, "diagnosis", 2.5),
        (APTOS, "diagnosis", "severe"),
        (BREAST, "cancer", "likely"),
        (CASSAVA, "label", None),
        (CASSAVA, "label", 1.5),
        (CASSAVA, "label", "healthy"),
        (CATS, "label", "dog"),
        (LEAVES, "rust", None),
        (LEAVES, "rust", "some"),
        (MELANOMA, "target", None),
        (PETS, "Pawpularity", "cute"),
        (RANZCR, "CVC - Abnormal", None),
        (SETI, "target", None),
        (SPINE, "fractured", "yes"),
        (TUMOUR, "MGMT_value", None),
    ],
)
def test_what_made_a_grader_fail_is_refused_by_row(
    competition_id: str, column: str, value: object, tmp_path: Path
) -> None:
    for judgement in grade_in_both(competition_id, with_cell(competition_id, column, value), tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 1")


@pytest.mark.parametrize(("competition_id", "column"), [(TISSUE, "label"), (DOGS, "beagle")])
def test_what_made_a_grader_fail_is_refused_by_row_where_edition_corrected_is_not(
    competition_id: str, column: str, tmp_path: Path
) -> None:
    submission = sample(competition_id, "v1").astype({column: object})
    submission.loc[0, column] = "unsure"
    judgement = grade_in(competition_id, "v1", submission, tmp_path)
    assert judgement.outcome == "rejected"
    assert judgement.message.startswith(f"Row 1: {column}")


@pytest.mark.parametrize("competition_id", [APTOS, DOGS, PETS, RANZCR, SPINE])
def test_a_wrong_number_of_rows_is_refused(competition_id: str, tmp_path: Path) -> None:
    excluded = registry.get(competition_id).excluded
    for edition in EDITIONS[: 1 if excluded else 2]:
        submission = sample(competition_id, edition)
        for rows in (submission.iloc[1:], pd.concat([submission, submission.iloc[:1]]), submission.iloc[:0]):
            judgement = grade_in(competition_id, edition, rows, tmp_path)
            assert judgement.outcome == "rejected"
            assert judgement.message == f"The submission has {len(rows)} rows, expected {len(submission)}."


@pytest.mark.parametrize(
    ("competition_id", "column"), [(PADDY, "label"), (SEEDLINGS, "species"), (LEAVES_2021, "labels")]
)
def test_numbers_instead_of_names_are_refused(competition_id: str, column: str, tmp_path: Path) -> None:
    make = from_answers(competition_id, column, lambda truth: np.arange(len(truth)))
    for judgement in grade_in_both(competition_id, make, tmp_path):
        assert judgement.outcome == "rejected"
        assert "holds numbers" in judgement.message


@pytest.mark.parametrize("competition_id", [DOGS, TISSUE])
def test_what_no_split_can_mend_is_left_out_of_edition_corrected(competition_id: str, tmp_path: Path) -> None:
    vector = Vector(VECTORS / competition_id)
    raw = vector.unpack_raw(tmp_path / "raw")
    assert prepare_competition(competition_id, data_dir=tmp_path / "data", raw=raw).is_dir()
    with pytest.raises(UsageProblem, match="not part of edition corrected"):
        prepare_competition(competition_id, data_dir=tmp_path / "data", raw=raw, edition="corrected")


def test_preparing_again_replaces_what_was_prepared(tmp_path: Path) -> None:
    raw = Vector(VECTORS / PADDY).unpack_raw(tmp_path / "raw")
    first = prepare_competition(PADDY, data_dir=tmp_path / "data", raw=raw)
    listing = sorted(first.rglob("*"))
    (first / "public" / "train.csv").unlink()
    assert sorted(prepare_competition(PADDY, data_dir=tmp_path / "data", raw=raw).rglob("*")) == listing


def test_kappa_of_eye_grades_is_over_all_five(tmp_path: Path) -> None:
    # grades 2 and 3 occur on neither side
    truth = pd.DataFrame({"id_code": list("abcd"), "diagnosis": [0, 1, 4, 4]})
    predicted = truth.assign(diagnosis=[0, 1, 4, 1])
    assert scores_against(truth, predicted, APTOS, tmp_path) == pytest.approx([0.8, 0.625])


def test_eye_grades_off_the_scale_are_refused(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(APTOS, with_cell(APTOS, "diagnosis", 9, row=1, base=answers), tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message == "Row 2: diagnosis 9 is out of range; expected a number from 0 to 4."


def test_equal_eye_photographs_stay_on_one_side(tmp_path: Path) -> None:
    def make_equal(raw: Path) -> None:
        for number, photo in enumerate(sorted((raw / "train_images").iterdir())):
            photo.write_bytes(b"eye %d" % (number // 3))

    sides = {}
    for edition in EDITIONS:
        public = prepared_after(make_equal, APTOS, edition, tmp_path) / "public"
        train, test = (
            {photo.read_bytes() for photo in (public / name).iterdir()}
            for name in ("train_images", "test_images")
        )
        sides[edition] = train & test
    assert sides["v1"]
    assert not sides["corrected"]


def features(path: Path) -> bytes:
    return b"".join(tfrecords.records(path))


def test_test_records_do_not_tell_their_labels() -> None:
    for edition, told in (("v1", True), ("corrected", False)):
        public = prepared(CASSAVA, edition) / "public"
        test = sorted((public / "test_tfrecords").iterdir())
        assert test
        assert all((b"target" in features(path)) == told for path in test)
        assert all(b"target" in features(path) for path in (public / "train_tfrecords").iterdir())
        names = {name for path in test for name in tfrecords.texts(path, "image_name")}
        assert names == {path.name for path in (public / "test_images").iterdir()}


def test_melanoma_records_that_tell_labels_are_left_out() -> None:
    records = prepared(MELANOMA, "v1") / "public" / "tfrecords"
    assert b"target" in features(records / "test00-2071.tfrec")
    assert not (prepared(MELANOMA, "corrected") / "public" / "tfrecords").exists()


def test_x_rayed_patients_stay_on_one_side() -> None:
    shared, rows = {}, {}
    for edition in EDITIONS:
        parts = [table(RANZCR, edition, name) for name in ("public/train.csv", "private/test.csv")]
        shared[edition] = set(parts[0]["PatientID"]) & set(parts[1]["PatientID"])
        rows[edition] = sum(map(len, parts))
    assert shared["v1"]
    assert not shared["corrected"]
    assert rows["v1"] == rows["corrected"]


def test_patients_with_several_lesions_stay_on_one_side(tmp_path: Path) -> None:
    def share_patients(raw: Path) -> None:
        lesions = pd.read_csv(raw / "train.csv")
        lesions["patient_id"] = [f"IP_{number % 20}" for number in range(len(lesions))]
        lesions.to_csv(raw / "train.csv", index=False)

    shared = {}
    for edition in EDITIONS:
        public = prepared_after(share_patients, MELANOMA, edition, tmp_path) / "public"
        train, test = (set(pd.read_csv(public / name)["patient_id"]) for name in ("train.csv", "test.csv"))
        shared[edition] = train & test
    assert shared["v1"]
    assert not shared["corrected"]


def test_equal_melanoma_images_stay_on_one_side(tmp_path: Path) -> None:
    def make_equal(raw: Path) -> None:
        for number, photo in enumerate(sorted((raw / "jpeg" / "train").iterdir())):
            photo.write_bytes(b"lesion %d" % (number % 30))

    shared = {}
    for edition in EDITIONS:
        public = prepared_after(make_equal, MELANOMA, edition, tmp_path) / "public" / "jpeg"
        train, test = (
            {photo.read_bytes() for photo in (public / name).iterdir()} for name in ("train", "test")
        )
        shared[edition] = train & test
    assert shared["v1"]
    assert not shared["corrected"]


def test_hotel_ids_count_however_they_are_written(tmp_path: Path) -> None:
    padded = from_answers(HOTEL, "hotel_id", lambda truth: "  0" + truth["hotel_id"].map(str) + "  7")
    v1, corrected = grade_in_both(HOTEL, padded, tmp_path)
    assert v1.score == 0
    assert corrected.score == 1


@pytest.mark.parametrize("cell", [None, "the Ritz", "36363.0", "1,2"])
def test_what_is_no_hotel_id_is_refused(cell: str | None, tmp_path: Path) -> None:
    v1, corrected = grade_in_both(HOTEL, with_cell(HOTEL, "hotel_id", cell), tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message.startswith("Row 1: hotel_id")


@pytest.mark.parametrize(("competition_id", "column"), [(IMET, "attribute_ids"), (LEAVES_2021, "labels")])
def test_labels_that_no_test_image_has_count_as_wrong(
    competition_id: str, column: str, tmp_path: Path
) -> None:
    surplus = from_answers(competition_id, column, lambda truth: truth[column].map(str) + " nothing")
    v1, corrected = grade_in_both(competition_id, surplus, tmp_path)
    assert v1.score == 1
    assert corrected.score is not None and corrected.score < 1


def test_one_attribute_per_picture_can_be_submitted(tmp_path: Path) -> None:
    single = from_answers(IMET, "attribute_ids", lambda truth: truth["attribute_ids"].str.split().str[0])
    v1, corrected = grade_in_both(IMET, single, tmp_path)
    assert v1.outcome == "rejected"
    assert "several attributes" in v1.message
    assert corrected.score is not None and corrected.score > 0


def test_the_advice_to_repeat_an_attribute_helps(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = answers(IMET, edition)
        first = submission["attribute_ids"].str.split().str[0]
        first.iloc[0] = f"{first.iloc[0]} {first.iloc[0]}"
        return submission.assign(attribute_ids=first)

    v1, corrected = grade_in_both(IMET, make, tmp_path)
    assert v1.score == pytest.approx(corrected.score)


def test_every_leaf_photo_has_the_same_weight(tmp_path: Path) -> None:
    def half_empty(truth: pd.DataFrame) -> pd.Series:
        several = truth["labels"].str.contains(" ")
        return truth["labels"].where(several, "")

    v1, corrected = grade_in_both(LEAVES_2021, from_answers(LEAVES_2021, "labels", half_empty), tmp_path)
    truth = answers(LEAVES_2021, "corrected")["labels"].str.split().str.len()
    assert corrected.score == pytest.approx((truth > 1).mean())
    hits = truth[truth > 1].sum()
    assert v1.score == pytest.approx(2 * hits / (truth.sum() + hits))


def test_all_eleven_findings_are_asked_for_and_scored(tmp_path: Path) -> None:
    assert len(sample(RANZCR, "v1").columns) == 1 + 9
    assert len(sample(RANZCR, "corrected").columns) == 1 + 11
    swapped = from_answers(RANZCR, "CVC - Normal", lambda truth: 1 - truth["CVC - Normal"])
    v1, corrected = grade_in_both(RANZCR, swapped, tmp_path)
    assert v1.score == 1
    assert corrected.score == pytest.approx(10 / 11)
    lacking = grade_in(
        RANZCR, "corrected", answers(RANZCR, "corrected").drop(columns="CVC - Normal"), tmp_path
    )
    assert lacking.outcome == "rejected"
    assert "'CVC - Normal' is missing" in lacking.message


def test_the_leaky_first_data_of_seti_are_left_out() -> None:
    assert (prepared(SETI, "v1") / "public" / "old_leaky_data" / "test_labels_old.csv").is_file()
    assert not (prepared(SETI, "corrected") / "public" / "old_leaky_data").exists()


@pytest.mark.parametrize("value", [None, np.inf])
def test_a_missing_or_infinite_cancer_probability_is_refused(value: float | None, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(BREAST, edition).astype({"cancer": float})
        submission.loc[2, "cancer"] = value
        return submission

    v1, corrected = grade_in_both(BREAST, make, tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message.startswith("Row 3: cancer")


def test_only_negative_cancer_probabilities_are_refused(tmp_path: Path) -> None:
    negative = from_answers(BREAST, "cancer", lambda truth: -0.5)
    for judgement in grade_in_both(BREAST, negative, tmp_path):
        assert judgement.message == "Every cancer value is negative; expected probabilities from 0 to 1."


def test_a_tenth_of_the_spines_is_test_and_the_others_are_told_whole() -> None:
    counts = {
        edition: [len(table(SPINE, edition, f"public/{name}.csv")) for name in ("train", "test")]
        for edition in EDITIONS
    }
    studies = counts["v1"][0] + counts["v1"][1] // 8
    assert counts["v1"][0] == round(studies * 0.1)
    assert counts["corrected"] == [studies - -(-studies // 10), 8 * -(-studies // 10)]
    public = prepared(SPINE, "corrected") / "public"
    train = set(table(SPINE, "corrected", "public/train.csv")["StudyInstanceUID"])
    assert {path.stem for path in (public / "segmentations").iterdir()} <= train
    assert set(table(SPINE, "corrected", "public/train_bounding_boxes.csv")["StudyInstanceUID"]) <= train
    told = {edition: len(table(SPINE, edition, "public/train_bounding_boxes.csv")) for edition in EDITIONS}
    assert told["corrected"] > told["v1"]


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
    inside = b"".join(path.read_bytes() for path in (public / "test_images").rglob("*.dcm"))
    assert not any(name.encode() in inside for name in known)


def test_spine_losses_are_averaged_over_all_rows(tmp_path: Path) -> None:
    rows = ["1.2_patient_overall", "1.2_C1", "1.3_patient_overall", "1.3_C1"]
    truth = pd.DataFrame({"row_id": rows, "fractured": [1, 0, 0, 0]})
    predicted = truth.assign(fractured=[0.5, 0.5, 0.0, 0.0])
    scores = scores_against(truth, predicted, SPINE, tmp_path)
    assert scores == pytest.approx([np.log(2) / 2, np.log(2) * 15 / 23], abs=1e-12)


def test_hidden_messages_cannot_be_told_from_the_program_alone(tmp_path: Path) -> None:
    vector = Vector(VECTORS / ALASKA)
    labels: dict[tuple[Edition, int], list[int]] = {}
    for edition in EDITIONS:
        for other in (0, 1):
            raw = vector.unpack_raw(tmp_path / f"{edition}{other}" / "raw")
            for cover in (raw / "Cover").iterdir():
                cover.write_bytes(cover.read_bytes() + b"." * other)
            folder = prepare_competition(
                ALASKA,
                data_dir=tmp_path / f"{edition}{other}",
                raw=raw,
                edition=edition,
                parameters=vector.parameters,
            )
            labels[edition, other] = pd.read_csv(folder / "private" / "test.csv")["Label"].tolist()
    assert labels["v1", 0] == labels["v1", 1]
    assert labels["corrected", 0] != labels["corrected", 1]
    assert labels["corrected", 0] == answers(ALASKA, "corrected")["Label"].tolist()
