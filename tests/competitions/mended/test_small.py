"""Mended defects of small competitions: comments, leaves and passages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    grade_in,
    grade_in_both,
    mends,
    sample,
    table,
)
from tests.conformance.trees import VECTORS, Vector

INSULTS = "detecting-insults-in-social-commentary"
LEAF = "leaf-classification"
SPOOKY = "spooky-author-identification"


@mends(INSULTS, "earlier-test-set-than-ranked")
def test_insults_are_ranked_on_the_verification_set(tmp_path: Path) -> None:
    def raw_table(name: str) -> pd.DataFrame:
        return pd.read_csv(raw / f"{name}.csv", dtype=str, keep_default_na=False)

    raw = Vector(VECTORS / INSULTS).unpack_raw(tmp_path / "raw")
    first, earlier, later = map(raw_table, ("train", "test_with_solutions", "impermium_verification_labels"))
    expected = {"v1": (first, earlier), "corrected": (pd.concat([first, earlier[first.columns]]), later)}
    for edition in EDITIONS:
        train, test = expected[edition]
        assert table(INSULTS, edition, "public/train.csv").equals(train.reset_index(drop=True))
        assert table(INSULTS, edition, "private/test.csv").equals(test)
        shown = table(INSULTS, edition, "public/test.csv")
        assert shown.equals(test[shown.columns])
        assert "Insult" not in shown.columns


@mends(INSULTS, "comments-read-as-missing")
@pytest.mark.parametrize("comment", ["NA", "null", "None"])
def test_a_comment_that_reads_as_missing_spoils_every_submission_of_v1(comment: str, tmp_path: Path) -> None:
    def change(raw: Path) -> None:
        for name in ("test_with_solutions", "impermium_verification_labels"):
            rows = pd.read_csv(raw / f"{name}.csv", dtype=str, keep_default_na=False)
            rows.loc[0, "Comment"] = comment
            rows.to_csv(raw / f"{name}.csv", index=False)

    judgements = {}
    for edition in EDITIONS:
        folder = prepared_after(change, INSULTS, edition, tmp_path)
        perfect = folder / "private" / "gold_submission.csv"
        judgements[edition] = judge(GradeRequest(INSULTS, perfect, folder, edition))
    assert judgements["v1"].outcome == "rejected"
    assert judgements["corrected"].score == 1


BY_CLASS = [
    pytest.param(LEAF, marks=mends(LEAF, "rows-must-sum-to-one")),
    pytest.param(SPOOKY, marks=mends(SPOOKY, "rows-must-sum-to-one")),
]


@pytest.mark.parametrize("competition_id", BY_CLASS)
def test_probabilities_are_rescaled_as_on_kaggle(competition_id: str, tmp_path: Path) -> None:
    def unscaled(edition: Edition) -> pd.DataFrame:
        submission = sample(competition_id, edition)
        submission[submission.columns[1:]] *= 0.5
        return submission

    v1, corrected = grade_in_both(competition_id, unscaled, tmp_path)
    assert v1.outcome == "rejected"
    assert v1.message.startswith("Row 1")
    untouched = grade_in(competition_id, "corrected", sample(competition_id, "corrected"), tmp_path)
    assert corrected.outcome == untouched.outcome == "scored"
    assert corrected.score == pytest.approx(untouched.score)


@pytest.mark.parametrize("competition_id", BY_CLASS)
def test_probabilities_are_clipped_as_on_kaggle(competition_id: str, tmp_path: Path) -> None:
    def certain_and_wrong(edition: Edition) -> pd.DataFrame:
        submission = answers(competition_id, edition)
        submission[submission.columns[1:]] = np.roll(submission[submission.columns[1:]].to_numpy(), 1, axis=1)
        return submission

    v1, corrected = grade_in_both(competition_id, certain_and_wrong, tmp_path)
    assert v1.score == pytest.approx(-np.log(np.finfo(float).eps))
    assert corrected.score == pytest.approx(-np.log(1e-15))
