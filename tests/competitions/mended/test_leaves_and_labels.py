"""Mended defects of photos of leaves, and of pictures with several labels each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions.kit.formats import tfrecords
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.mended.editions import (
    answers,
    from_answers,
    grade_in_both,
    mends,
)
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector

CASSAVA = "cassava-leaf-disease-classification"
IMET = "imet-2020-fgvc7"
LEAVES_2021 = "plant-pathology-2021-fgvc8"
PADDY = "paddy-disease-classification"


@mends(CASSAVA, "labels-in-the-test-records")
def test_test_records_do_not_tell_their_labels() -> None:
    tells: dict[Edition, bool] = {"v1": True, "corrected": False}
    for edition, told in tells.items():
        public = prepared(CASSAVA, edition) / "public"
        test = sorted((public / "test_tfrecords").iterdir())
        assert test
        for path, expected in [
            *((path, told) for path in test),
            *((path, True) for path in (public / "train_tfrecords").iterdir()),
        ]:
            contents = list(tfrecords.records(path))
            assert contents
            assert {b"target" in content for content in contents} == {expected}
        names = {name for path in test for name in tfrecords.texts(path, "image_name")}
        assert names == {path.name for path in (public / "test_images").iterdir()}
        assert names == set(answers(CASSAVA, edition)["image_id"])


@mends(PADDY, "preparing-again-fails")
@pytest.mark.parametrize("edition", EDITIONS)
def test_preparing_again_replaces_what_was_prepared(edition: Edition, tmp_path: Path) -> None:
    raw = Vector(VECTORS / PADDY).unpack_raw(tmp_path / "raw")
    first = prepare_competition(PADDY, data_dir=tmp_path / "data", raw=raw, edition=edition)
    listing = sorted(first.rglob("*"))
    (first / "public" / "train.csv").unlink()
    again = prepare_competition(PADDY, data_dir=tmp_path / "data", raw=raw, edition=edition)
    assert sorted(again.rglob("*")) == listing


@pytest.mark.parametrize(
    ("competition_id", "column", "hits_of"),
    [
        pytest.param(
            IMET,
            "attribute_ids",
            lambda sizes: 2 * sizes.sum() / (2 * sizes + 1).sum(),
            marks=mends(IMET, "unknown-attributes-cost-nothing"),
        ),
        pytest.param(
            LEAVES_2021,
            "labels",
            lambda sizes: (2 * sizes / (2 * sizes + 1)).mean(),
            marks=mends(LEAVES_2021, "unknown-labels-cost-nothing"),
        ),
    ],
)
def test_labels_that_no_test_image_has_count_as_wrong(
    competition_id: str, column: str, hits_of: Callable[[pd.Series], float], tmp_path: Path
) -> None:
    surplus = from_answers(competition_id, column, lambda truth: truth[column].map(str) + " nothing")
    v1, corrected = grade_in_both(competition_id, surplus, tmp_path)
    sizes = answers(competition_id, "corrected")[column].map(str).str.split().map(len)
    assert v1.score == 1
    assert corrected.score == pytest.approx(hits_of(sizes))


def first_attributes(edition: Edition) -> pd.DataFrame:
    """One right attribute for each picture."""
    truth = answers(IMET, edition)
    return truth.assign(attribute_ids=truth["attribute_ids"].str.split().str[0])


@mends(IMET, "single-attributes-crash")
def test_one_attribute_per_picture_can_be_submitted(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(IMET, first_attributes, tmp_path)
    assert v1.outcome == "rejected"
    assert "attribute_ids reads as a column of plain numbers" in v1.message
    sizes = answers(IMET, "corrected")["attribute_ids"].str.split().map(len)
    assert corrected.score == pytest.approx(2 * len(sizes) / (len(sizes) + sizes.sum()))


def test_the_advice_to_repeat_an_attribute_helps(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = first_attributes(edition)
        first = str(submission.loc[0, "attribute_ids"])
        submission.loc[0, "attribute_ids"] = f"{first} {first}"
        return submission

    v1, corrected = grade_in_both(IMET, make, tmp_path)
    assert v1.score is not None
    assert v1.score == pytest.approx(corrected.score)
