"""Each defect of the lungs' capacities that edition corrected mends, shown in both editions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, grade_in_both, mends, refusals, sample
from tests.competitions.prepared import prepared

LUNGS = "osic-pulmonary-fibrosis-progression"


def lungs(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Edition], pd.DataFrame]:
    """A changed submission of the true values, as far as there are some."""

    def make(edition: Edition) -> pd.DataFrame:
        rows = answers(LUNGS, edition)[["Patient_Week", "FVC", "Confidence"]]
        return change(rows.fillna({"FVC": 2000}))

    return make


def last_visit(edition: Edition) -> str:
    """A visit that is scored: the last one of all."""
    rows = answers(LUNGS, edition)
    visited = rows[rows["FVC"].notna()]
    return str(visited["Patient_Week"].iloc[visited["Weeks"].argmax()])


@mends(LUNGS, "rows-may-be-left-out")
def test_one_row_is_the_whole_score_in_v1_and_refused_in_corrected(tmp_path: Path) -> None:
    one = last_visit("v1")
    known = answers(LUNGS, "v1").set_index("Patient_Week")["FVC"][one]

    def alone(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.assign(FVC=2000.0, Confidence=100).set_index("Patient_Week", drop=False)
        rows.loc[one, ["FVC", "Confidence"]] = [known, 70]
        return rows

    whole, _ = grade_in_both(LUNGS, lungs(alone), tmp_path)
    v1, corrected = grade_in_both(LUNGS, lungs(lambda rows: alone(rows).loc[[one]]), tmp_path)
    best = -math.log(math.sqrt(2) * 70)
    assert whole.score is not None
    assert whole.score < best
    assert v1.score == pytest.approx(best)
    assert "rows, expected" in corrected.message


@mends(LUNGS, "rows-may-be-left-out")
def test_no_scored_row_at_all_is_nan_in_v1_and_refused_in_corrected(tmp_path: Path) -> None:
    def unscored(edition: Edition) -> pd.DataFrame:
        empty = answers(LUNGS, edition)["FVC"].isna()
        return lungs(lambda rows: rows)(edition)[empty.to_numpy()]

    v1, corrected = grade_in_both(LUNGS, unscored, tmp_path)
    assert v1.score is not None
    assert math.isnan(v1.score)
    assert "rows, expected" in corrected.message


@mends(LUNGS, "repeated-visits-crash")
def test_a_repeated_visit_is_refused(tmp_path: Path) -> None:
    def repeated(edition: Edition) -> pd.DataFrame:
        rows = lungs(lambda rows: rows)(edition)
        again = rows[rows["Patient_Week"] == last_visit(edition)]
        return pd.concat([rows, again])

    v1, corrected = refusals(LUNGS, repeated, tmp_path)
    rows = len(sample(LUNGS, "v1"))
    assert v1.startswith(f"Row {rows + 1}: Patient_Week ") and "stands in a row before it" in v1
    assert "rows, expected" in corrected


@mends(LUNGS, "asked-weeks-tell-the-visits")
def test_weeks_asked_for_tell_those_of_the_visits_in_v1_and_not_in_corrected(tmp_path: Path) -> None:
    patient = answers(LUNGS, "v1")["Patient"].iloc[0]

    def far_outside(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        first = rows[rows["Patient"] == patient].iloc[[0]]
        more = [first.assign(Weeks=-40), first.assign(Weeks=200)]
        pd.concat([rows, *more]).to_csv(raw / "train.csv", index=False)

    for edition in EDITIONS:
        changed = prepared_after(far_outside, LUNGS, edition, tmp_path)
        asked, visits = [], []
        for folder in (prepared(LUNGS, edition), changed):
            rows = pd.read_csv(folder / "private/test.csv")
            asked.append((rows["Weeks"].min(), rows["Weeks"].max()))
            visited = rows["Weeks"][rows["FVC"].notna()]
            visits.append((visited.min(), visited.max()))
        train = pd.read_csv(changed / "public/train.csv")["Weeks"]
        if edition == "v1":
            assert asked == visits
            assert asked[1] == (-40, 200)
        else:
            assert asked == [(min(-12, train.min()), max(133, train.max()))] * 2


@mends(LUNGS, "two-visits-in-a-week")
def test_two_visits_in_one_week_are_refused_in_v1_and_the_first_one_counts_in_corrected(
    tmp_path: Path,
) -> None:
    patient = answers(LUNGS, "v1")["Patient"].iloc[0]

    def visit_twice(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        again = rows[rows["Patient"] == patient].iloc[[0]].assign(FVC=1)
        pd.concat([rows, again]).to_csv(raw / "train.csv", index=False)

    with pytest.raises(DataProblem, match="two visits in one week"):
        prepared_after(visit_twice, LUNGS, "v1", tmp_path)
    folder = prepared_after(visit_twice, LUNGS, "corrected", tmp_path)
    expected = prepared(LUNGS, "corrected")
    for name in ("private/test.csv", "public/test.csv"):
        assert (folder / name).read_bytes() == (expected / name).read_bytes()
