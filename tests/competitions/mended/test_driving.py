"""Each defect of the 3D objects around self-driving cars that edition corrected mends, shown in both editions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    mends,
    refusals,
    scores_against,
    table,
    with_cell,
)
from tests.competitions.prepared import prepared

DRIVING = "3d-object-detection-for-autonomous-vehicles"
COLUMN = "PredictionString"
CAR, FARTHER_CAR, BUS = "5 5 0 2 4 1.5 0.3 car", "50 50 0 2 4 1.5 0.3 car", "9 9 0 2 4 1.5 0.3 bus"


def samples(*cells: str) -> pd.DataFrame:
    """Samples with these boxes, each with its confidence before it."""
    return pd.DataFrame({"Id": [f"s{number}" for number in range(len(cells))], COLUMN: cells})


def records_of(edition: Edition, name: str) -> list[dict[str, Any]]:
    return list(json.loads((prepared(DRIVING, edition) / "public" / name).read_text()))


@mends(DRIVING, "precision-other-than-told")
def test_the_description_tells_the_average_precision_that_is_computed(tmp_path: Path) -> None:
    truth = samples(f"1.0 {CAR} 1.0 {FARTHER_CAR}")
    told = samples(f"0.9 {CAR} 0.8 {BUS.replace('bus', 'car')}")
    # one right, one wrong, one missed: TP / (TP + FP + FN) would be a third
    assert scores_against(truth, told, DRIVING, tmp_path) == [pytest.approx(1 / 2)] * 2
    for edition in EDITIONS:
        text = (prepared(DRIVING, edition) / "public" / "description.md").read_text()
        assert "AP is the area under the curve of precision over recall" in text
        assert "TP" not in text


@mends(DRIVING, "test-logs-in-both-maps")
def test_the_train_map_lists_the_test_logs_in_v1_and_its_own_in_corrected() -> None:
    tokens = [
        records_of(edition, f"{side}_data/map.json")[0]["log_tokens"]
        for edition in EDITIONS
        for side in ("train", "test")
    ]
    assert tokens[0] == tokens[1] == tokens[3]
    assert not set(tokens[2]) & set(tokens[3])


@mends(DRIVING, "annotation-lists-in-test-samples")
def test_lists_of_annotations_are_public_in_v1_and_private_in_corrected() -> None:
    v1, corrected = (records_of(edition, "test_data/sample.json") for edition in EDITIONS)
    assert any("anns" in record for record in v1)
    assert not any("anns" in record for record in corrected)
    assert [record["token"] for record in v1] == [record["token"] for record in corrected]


@mends(DRIVING, "annotation-lists-in-test-samples")
def test_no_file_of_corrected_names_an_annotation_or_an_object_of_a_test_sample(tmp_path: Path) -> None:
    raw: list[Path] = []
    folders = {
        edition: prepared_after(raw.append, DRIVING, edition, tmp_path) / "public" for edition in EDITIONS
    }
    annotations = json.loads((raw[0] / "train_data" / "sample_annotation.json").read_text())
    held_out = set(pd.read_csv(folders["v1"] / "sample_submission.csv")["Id"])
    hidden = {record["token"] for record in annotations if record["sample_token"] in held_out}
    hidden |= {record["instance_token"] for record in annotations if record["sample_token"] in held_out}
    hidden -= {record["instance_token"] for record in annotations if record["sample_token"] not in held_out}
    named = {
        edition: {
            token
            for path in folder.rglob("*")
            if path.suffix in {".json", ".csv"}
            for token in hidden
            if token in path.read_text()
        }
        for edition, folder in folders.items()
    }
    assert named["v1"]
    assert not named["corrected"]


@mends(DRIVING, "malformed-boxes-crash")
@pytest.mark.parametrize(
    "box",
    ["1 1 1 0 4 2 0.1", "1 1 1 2 4 -1 0.1", "nan 1 1 2 4 2 0.1", "1 1 1 2 4 2 nan", "1e9 1 1 2 4 2 0.1"],
)
def test_impossible_boxes_of_a_class_that_is_there_are_refused_by_row(box: str, tmp_path: Path) -> None:
    present = table(DRIVING, "v1", "private/test.csv")[COLUMN].iloc[0].split(" ")[8]
    for message in refusals(DRIVING, with_cell(DRIVING, COLUMN, f"0.5 {box} {present}"), tmp_path):
        assert message.startswith(f"Row 1: {COLUMN} ")


@mends(DRIVING, "samples-without-objects-crash")
@pytest.mark.parametrize("edition", EDITIONS)
def test_a_held_out_sample_without_objects_can_be_prepared(edition: Edition, tmp_path: Path) -> None:
    empty = table(DRIVING, "v1", "public/sample_submission.csv")["Id"].iloc[0]

    def change(raw: Path) -> None:
        labels = pd.read_csv(raw / "train.csv")
        labels.loc[labels["Id"] == empty, COLUMN] = np.nan
        labels.to_csv(raw / "train.csv", index=False)

    folder = prepared_after(change, DRIVING, edition, tmp_path)
    answers = pd.read_csv(folder / "private" / "test.csv", keep_default_na=False)
    assert answers.set_index("Id").loc[empty, COLUMN] == ""
