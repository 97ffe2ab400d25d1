"""Mended defects of boxes in pictures that need other raw data; how they are scored is in `verdicts`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    mends,
    scores_against,
    table,
)

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


# x-rays


def xrays(*rows: tuple[str, int, float, float, float, float]) -> pd.DataFrame:
    columns = ["image_id", "class_id", "x_min", "y_min", "x_max", "y_max"]
    return pd.DataFrame(rows, columns=columns).assign(class_name="x", rad_id="R1")


def predicted(**cells: str) -> pd.DataFrame:
    return pd.DataFrame({"image_id": list(cells), "PredictionString": list(cells.values())})


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
