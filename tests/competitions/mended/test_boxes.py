"""Each defect of competitions of boxes in pictures that edition corrected mends, shown in both editions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    grade_in_both,
    mends,
    sample,
    scores_against,
    table,
)

COVID = "siim-covid19-detection"
KUZUSHIJI = "kuzushiji-recognition"
XRAY = "vinbigdata-chest-xray-abnormalities-detection"


# kuzushiji


@mends(KUZUSHIJI, "held-out-page-without-text")
@pytest.mark.parametrize("edition", EDITIONS)
def test_a_page_without_text_can_be_held_out(edition: Edition, tmp_path: Path) -> None:
    page = table(KUZUSHIJI, "v1", "private/test.csv")["image_id"].iloc[0]

    def change(raw: Path) -> None:
        labels = pd.read_csv(raw / "train.csv")
        labels.loc[labels["image_id"] == page, "labels"] = np.nan
        labels.to_csv(raw / "train.csv", index=False)

    folder = prepared_after(change, KUZUSHIJI, edition, tmp_path)
    gold = folder / "private/gold_submission.csv"
    assert pd.read_csv(gold, keep_default_na=False).set_index("image_id")["labels"][page] == ""
    assert judge(GradeRequest(KUZUSHIJI, gold, folder, edition)).score == 1.0


# covid


def covid(rows: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"id": list(rows), "PredictionString": list(rows.values())})


@mends(COVID, "pseudo-pairs-instead-of-envelope")
def test_a_label_that_is_never_found_earns_credit_in_v1_and_none_in_corrected(tmp_path: Path) -> None:
    truth = covid(
        {"a_study": "typical 1 0 0 1 1", "b_study": "typical 1 0 0 1 1", "b_image": "none 1 0 0 1 1"}
    )
    wrong = covid({"a_study": "x 1 0 0 1 1", "b_study": "x 1 0 0 1 1", "b_image": "none 1 0 0 1 1"})
    v1, corrected = scores_against(truth, wrong, COVID, tmp_path)
    assert v1 == pytest.approx((1 + 2 / 3) / 2)
    assert corrected == pytest.approx(0.5)


@mends(COVID, "pseudo-pairs-instead-of-envelope")
def test_precision_is_raised_to_the_best_at_higher_recall_in_corrected_alone(tmp_path: Path) -> None:
    truth = covid(
        {"a_study": "typical 1 0 0 1 1", "b_study": "typical 1 0 0 1 1", "c_study": "negative 1 0 0 1 1"}
    )
    told = ["typical 0.5 0 0 1 1", "typical 0.4 0 0 1 1", "typical 0.9 0 0 1 1 negative 1 0 0 1 1"]
    v1, corrected = scores_against(truth, truth.assign(PredictionString=told), COVID, tmp_path)
    assert v1 == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2)
    assert corrected == pytest.approx((2 / 3 + 1) / 2)


@mends(COVID, "labels-of-the-other-kind-of-row")
@pytest.mark.parametrize(
    ("study", "image", "score"),
    [
        ("typical 0.5 0 0 1 1", "none 1 0 0 1 1 typical 0.9 0 0 1 1", (0.5 + 1) / 2),
        ("typical 1 0 0 1 1 none 0.9 0 0 1 1", "none 0.5 0 0 1 1", (1 + 0.5) / 2),
    ],
    ids=["study label on an image", "image label on a study"],
)
def test_labels_on_the_other_kind_of_row_are_errors_in_v1_and_not_rated_in_corrected(
    study: str, image: str, score: float, tmp_path: Path
) -> None:
    truth = covid({"a_study": "typical 1 0 0 1 1", "a_image": "none 1 0 0 1 1"})
    v1, corrected = scores_against(truth, covid({"a_study": study, "a_image": image}), COVID, tmp_path)
    assert v1 == pytest.approx(score)
    assert corrected == pytest.approx(1.0)


# x-rays


def xrays(*rows: tuple[str, int, float, float, float, float]) -> pd.DataFrame:
    columns = ["image_id", "class_id", "x_min", "y_min", "x_max", "y_max"]
    return pd.DataFrame(rows, columns=columns).assign(class_name="x", rad_id="R1")


def predicted(**cells: str) -> pd.DataFrame:
    return pd.DataFrame({"image_id": list(cells), "PredictionString": list(cells.values())})


@mends(XRAY, "corners-taken-for-sizes")
def test_boxes_overlap_as_if_corners_were_sizes_in_v1_and_really_in_corrected(tmp_path: Path) -> None:
    truth = xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 1000, 1000, 1100, 1100))
    beside = predicted(z="0 1 0 0 1 1", a="3 1 1100 1100 1200 1200")
    assert scores_against(truth, beside, XRAY, tmp_path) == [pytest.approx((0 + 1) / 2), 0.0]


@mends(XRAY, "matches-with-id-zero-lost")
def test_the_first_box_cannot_be_found_in_v1_and_counts_in_corrected(tmp_path: Path) -> None:
    truth = xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 10, 10, 20, 20))
    right = predicted(z="14 1 0 0 1 1", a="3 1 10 10 20 20")
    assert scores_against(truth, right, XRAY, tmp_path) == [pytest.approx(0.5), pytest.approx(1.0)]


@mends(XRAY, "matches-with-id-zero-lost")
def test_a_perfect_submission_of_xrays_is_perfect_in_corrected_alone(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        XRAY, lambda edition: table(XRAY, edition, "private/gold_submission.csv"), tmp_path
    )
    assert v1.score is not None
    assert v1.score < 1.0
    assert corrected.score == 1.0


@mends(XRAY, "coco-instead-of-voc-precision")
def test_precision_is_read_at_101_recalls_in_v1_and_at_all_in_corrected(tmp_path: Path) -> None:
    truth = xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 10, 10, 20, 20), ("b", 3, 10, 10, 20, 20))
    half = predicted(z="0 1 0 0 1 1", a="3 1 10 10 20 20", b="0 1 0 0 1 1")
    v1, corrected = scores_against(truth, half, XRAY, tmp_path)
    assert v1 == pytest.approx(51 / 101 / 2)
    assert corrected == pytest.approx(0.5 / 2)


@mends(XRAY, "coco-instead-of-voc-precision")
def test_boxes_beyond_the_hundredth_count_in_corrected_alone(tmp_path: Path) -> None:
    truth = xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 10, 10, 20, 20))
    many = " ".join(["3 0.9 500 500 600 600"] * 100)
    late = predicted(z="0 1 0 0 1 1", a=f"{many} 3 0.1 10 10 20 20")
    v1, corrected = scores_against(truth, late, XRAY, tmp_path)
    assert v1 == 0.0
    assert corrected == pytest.approx(1 / 101 / 2)


@mends(XRAY, "coco-instead-of-voc-precision")
def test_an_overlap_of_just_the_limit_counts_in_v1_and_not_in_corrected(tmp_path: Path) -> None:
    truth = xrays(("z", 14, 0, 0, 1, 1), ("a", 3, 0, 0, 10, 10))
    told = predicted(z="0 1 0 0 1 1", a="3 1 0 0 10 4")
    assert scores_against(truth, told, XRAY, tmp_path) == [pytest.approx(0.5), 0.0]


@mends(XRAY, "repeated-images-accepted")
def test_an_image_that_stands_there_twice_scores_in_v1_and_is_refused_in_corrected(tmp_path: Path) -> None:
    def doubled(edition: Edition) -> pd.DataFrame:
        rows = sample(XRAY, edition)
        return pd.concat([rows, rows.iloc[:1]])

    v1, corrected = grade_in_both(XRAY, doubled, tmp_path)
    assert v1.outcome == "scored"
    assert corrected.outcome == "rejected"


@mends(XRAY, "one-box-per-image-and-class")
def test_several_findings_of_a_class_become_one_in_v1_and_stay_apart_in_corrected(tmp_path: Path) -> None:
    image = table(XRAY, "v1", "private/answers.csv")["image_id"].iloc[0]

    def change(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        boxes = [(0, 0, 100, 100), (10, 0, 110, 100), (500, 500, 600, 600)]
        findings = [(image, "Nodule/Mass", 8, f"R{i}", *box) for i, box in enumerate(boxes)]
        first = int((rows["image_id"] == image).idxmax())  # the images' order decides which are held out
        after = rows.iloc[first:]
        parts = [
            rows.iloc[:first],
            pd.DataFrame(findings, columns=rows.columns),
            after[after["image_id"] != image],
        ]
        pd.concat(parts).to_csv(raw / "train.csv", index=False)

    corners = ["x_min", "y_min", "x_max", "y_max"]
    folders = [prepared_after(change, XRAY, edition, tmp_path) for edition in EDITIONS]
    held = [pd.read_csv(folder / "private/answers.csv").set_index("image_id") for folder in folders]
    v1, corrected = (rows.loc[[image], corners].to_numpy().tolist() for rows in held)
    assert v1 == [[0, 0, 100, 100]]
    assert corrected == [[5, 0, 105, 100], [500, 500, 600, 600]]

    truths = [rows.loc[[image]].reset_index() for rows in held]
    normal = xrays(("a", 14, 0, 0, 1, 1))  # takes the ids of 0
    both = predicted(a="14 1 0 0 1 1", **{image: "8 0.9 500 500 600 600 8 0.8 5 0 105 100"})
    precisions = [
        scores_against(pd.concat([normal, truth]), both, XRAY, tmp_path)[place]
        for place, truth in enumerate(truths)
    ]
    assert precisions == [pytest.approx((0 + 1 / 2) / 2), pytest.approx(1.0)]
