"""Mended defects of competitions of masks, besides `verdicts`: malformed and odd masks, outlines, orders of rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.foundation.problems import UsageProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    grade_in_both,
    judged_against,
    mends,
    refusals,
    sample,
    table,
)
from tests.competitions.prepared import prepared

CONTRAILS = "google-research-identify-contrails-reduce-global-warming"
INK = "vesuvius-challenge-ink-detection"
KIDNEY = "hubmap-kidney-segmentation"
SALT = "tgs-salt-identification-challenge"
SCANS = "uw-madison-gi-tract-image-segmentation"

COLUMNS = {
    CONTRAILS: "encoded_pixels",
    INK: "Predicted",
    KIDNEY: "predicted",
    SALT: "rle_mask",
    SCANS: "predicted",
}
MALFORMED = {  # what made MLE-bench fail, or on ink and salt what it refuses and what made it fail
    CONTRAILS: "truth-and-prediction-swapped",
    INK: "bad-tokens-crash",
    KIDNEY: "malformed-runs-crash",
    SALT: "odd-and-bad-tokens",
    SCANS: "malformed-runs-crash",
}


def with_mask(competition_id: str, cell: str, row: int) -> Callable[[Edition], pd.DataFrame]:
    """Sample submissions with one mask changed; the others keep the column from being read as numbers."""

    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(competition_id, edition).astype({COLUMNS[competition_id]: object})
        submission[COLUMNS[competition_id]] = "1 1"
        submission.loc[row, COLUMNS[competition_id]] = cell
        return submission

    return make


@pytest.mark.parametrize(
    "competition_id", [pytest.param(each, marks=mends(each, defect)) for each, defect in MALFORMED.items()]
)
@pytest.mark.parametrize("cell", ["9 2 1 2", "1 5 3 1", "0 5", "3 0", "1.0 2", "one", "1 2 3 4 5"])
def test_malformed_masks_are_refused_by_row(competition_id: str, cell: str, tmp_path: Path) -> None:
    row = 0 if competition_id == INK else 1  # ink has one
    for message in refusals(competition_id, with_mask(competition_id, cell, row), tmp_path):
        assert message.startswith(f"Row {row + 1}: {COLUMNS[competition_id]} ")


@pytest.mark.parametrize(
    "competition_id", [pytest.param(each, marks=mends(each, defect)) for each, defect in MALFORMED.items()]
)
def test_a_column_of_numbers_is_refused_by_row(competition_id: str, tmp_path: Path) -> None:
    def numbers(edition: Edition) -> pd.DataFrame:
        return sample(competition_id, edition).assign(**{COLUMNS[competition_id]: 7})

    for message in refusals(competition_id, numbers, tmp_path):
        assert message.startswith(f"Row 1: {COLUMNS[competition_id]} '7' is not text")


@pytest.mark.parametrize(
    ("competition_id", "cell", "like"),
    [
        pytest.param(competition_id, cell, like, marks=mends(competition_id, *defects))
        for competition_id, odd, beyond in (
            (CONTRAILS, ["odd-tokens-and-runs-outside"], ["odd-tokens-and-runs-outside"]),
            (KIDNEY, ["odd-tokens-accepted"], ["runs-beyond-the-image-dropped"]),
            (SALT, ["odd-and-bad-tokens"], ["runs-beyond-the-image-cut"]),
        )
        for cell, like, defects in (
            ("7 ", "", odd),
            ("1 1 3", "1 1 3 1", odd),
            ("2 999999999", "2 {rest}", beyond),
            ("3 1 999999999 1", "3 1", beyond),
        )
    ],
)
def test_odd_masks_and_pixels_beyond_the_picture_are_read_somehow_in_v1_and_refused_in_corrected(
    competition_id: str, cell: str, like: str, tmp_path: Path
) -> None:
    empty = "-" if competition_id == CONTRAILS else ""
    pixels = {CONTRAILS: "height width", KIDNEY: "width_pixels height_pixels"}.get(competition_id)
    sides = answers(competition_id, "v1").loc[0, pixels.split()] if pixels else [101, 101]
    meant = like.format(rest=int(np.prod(sides)) - 1) or empty
    truth = answers(competition_id, "v1").astype(object)
    other = str(truth.loc[0, "encoding"]) if competition_id == KIDNEY else "5 3"  # earns another score
    if competition_id == SALT:  # wrong masks all earn nothing there: the meant one is made the true one
        truth.loc[0, "rle_mask"] = meant

    def in_v1(mask: str) -> float | None:
        submission = with_mask(competition_id, mask, 0)("v1")
        return judged_against(truth, submission, competition_id, tmp_path)[0].score

    _, corrected = grade_in_both(competition_id, with_mask(competition_id, cell, 0), tmp_path)
    assert in_v1(cell) is not None
    assert in_v1(cell) == in_v1(meant) != in_v1(other)
    assert corrected.outcome == "rejected"
    assert corrected.message.startswith(f"Row 1: {COLUMNS[competition_id]} ")


# contrails


@mends(CONTRAILS, "empty-cell-crashes")
def test_an_empty_cell_is_refused_by_row(tmp_path: Path) -> None:
    for message in refusals(CONTRAILS, with_mask(CONTRAILS, "", 2), tmp_path):
        assert message.startswith("Row 3: encoded_pixels ")


# kidneys


@mends(KIDNEY, "outlines-of-test-images-public")
def test_outlines_of_held_out_kidneys_are_public_in_v1_and_private_in_corrected() -> None:
    held_out = set(table(KIDNEY, "v1", "private/test.csv")["id"])
    v1, corrected = ({path.name for path in _public_files(KIDNEY, edition)} for edition in EDITIONS)
    for id_ in held_out:
        assert {f"{id_}.json", f"{id_}.tiff", f"{id_}-anatomical-structure.json"} <= v1
        assert {name for name in corrected if name.startswith(id_)} == {
            f"{id_}.tiff",
            f"{id_}-anatomical-structure.json",
        }
    assert not held_out & set(table(KIDNEY, "corrected", "public/train.csv")["id"])


def _public_files(competition_id: str, edition: Edition) -> list[Path]:
    return [path for path in (prepared(competition_id, edition) / "public").rglob("*") if path.is_file()]


# salt


@mends(SALT, "removed-pandas-function")
@pytest.mark.parametrize("edition", EDITIONS)
def test_salt_is_prepared_and_graded_without_the_function_that_pandas_removed(
    edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(pd.DataFrame, "applymap", raising=False)
    folder = prepared_after(lambda raw: None, SALT, edition, tmp_path)
    assert (folder / "private/test.csv").read_bytes() == (
        prepared(SALT, edition) / "private/test.csv"
    ).read_bytes()
    assert [each.outcome for each in grade_in_both(SALT, lambda each: sample(SALT, each), tmp_path)] == [
        "scored"
    ] * 2


# scans


def scans(organs: dict[str, str], shape: tuple[int, int] = (6, 4), slices: int = 1) -> pd.DataFrame:
    """Answers of a day: in each slice the mask of each organ, and the size of the picture."""
    rows = [
        (f"case1_day1_slice_{number:04d}", organ, mask)
        for number in range(1, slices + 1)
        for organ, mask in organs.items()
    ]
    return pd.DataFrame(rows, columns=["id", "class", "predicted"]).assign(
        image_width=float(shape[0]), image_height=float(shape[1])
    )


@mends(SCANS, "rows-never-aligned")
def test_leaving_out_what_is_wrong_raises_the_score_in_v1_and_is_refused_in_corrected(tmp_path: Path) -> None:
    truth = scans({"large_bowel": "1 3", "stomach": "9 2"}, slices=2)
    wrong_at_the_end = truth.assign(predicted=["1 3", "9 2", "20 1", "20 1"])
    whole, cut = (
        judged_against(truth, submission, SCANS, tmp_path)
        for submission in (wrong_at_the_end, wrong_at_the_end.iloc[:2])
    )
    assert cut[0].score is not None
    assert whole[0].score is not None
    assert cut[0].score > whole[0].score
    assert whole[1].outcome == "scored"
    assert "rows, expected" in cut[1].message


# ink, which has no edition corrected


def test_the_ink_competition_is_not_part_of_corrected() -> None:
    with pytest.raises(UsageProblem, match="published on Kaggle"):
        prepared(INK, "corrected")


@mends(INK, "wrong-id-crashes")
def test_a_fragment_of_another_name_is_refused_by_row(tmp_path: Path) -> None:
    (message,) = refusals(INK, lambda edition: sample(INK, edition).assign(Id="b"), tmp_path)
    assert message.startswith("Row 1: Id 'b'")
