"""What tests of mended defects share: a submission changed in one way, graded in both editions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.prepared import prepared

Cell = str | float | None
Column = Cell | pd.Series | np.ndarray


def mends(competition_id: str, *defect_ids: str) -> pytest.MarkDecorator:
    """Mark a test, or one of its cases, as showing these defects: what v1 does and what corrected does instead."""
    unknown = set(defect_ids) - {defect.id for defect in registry.get(competition_id).defects}
    if unknown or not defect_ids:
        raise KeyError(
            f"{competition_id} has no such defects: {', '.join(sorted(unknown)) or '(none named)'}"
        )
    return pytest.mark.mends(competition_id, *defect_ids)


def table(competition_id: str, edition: Edition, name: str) -> pd.DataFrame:
    """A prepared table, verbatim."""
    return pd.read_csv(prepared(competition_id, edition) / name, dtype=str, keep_default_na=False)


def sample(competition_id: str, edition: Edition) -> pd.DataFrame:
    """The sample submission of an edition."""
    return pd.read_csv(
        prepared(competition_id, edition) / registry.get(competition_id).sample_submission,
        keep_default_na=False,
    )


def answers(competition_id: str, edition: Edition) -> pd.DataFrame:
    """The answers, read as a grader reads them; most are a perfect submission."""
    return pd.read_csv(prepared(competition_id, edition) / registry.get(competition_id).answers)


def from_answers(
    competition_id: str, column: str, change: Callable[[pd.DataFrame], Column]
) -> Callable[[Edition], pd.DataFrame]:
    """Submissions that are the answers with one column made anew."""

    def make(edition: Edition) -> pd.DataFrame:
        truth = answers(competition_id, edition)
        return truth.assign(**{column: change(truth)})

    return make


def with_cell(
    competition_id: str,
    column: str,
    value: Cell,
    *,
    row: int = 0,
    base: Callable[[str, Edition], pd.DataFrame] = sample,
) -> Callable[[Edition], pd.DataFrame]:
    """Sample submissions, or answers, with one cell changed."""

    def make(edition: Edition) -> pd.DataFrame:
        submission = base(competition_id, edition)
        submission[column] = submission[column].astype(object)
        submission.loc[row, column] = value
        return submission

    return make


def grade_in(competition_id: str, edition: Edition, submission: pd.DataFrame, folder: Path) -> Judgement:
    """Grade a table in one edition."""
    path = folder / f"{edition}.csv"
    submission.to_csv(path, index=False)
    return judge(GradeRequest(competition_id, path, prepared(competition_id, edition), edition))


def grade_in_both(
    competition_id: str, make: Callable[[Edition], pd.DataFrame], folder: Path
) -> tuple[Judgement, Judgement]:
    """What v1 and what corrected say to the submission that `make` makes for each."""
    first, second = (grade_in(competition_id, edition, make(edition), folder) for edition in EDITIONS)
    return first, second


def refusals(competition_id: str, make: Callable[[Edition], pd.DataFrame], folder: Path) -> list[str]:
    """What each edition that the competition is part of says to a submission that it must refuse."""
    editions = EDITIONS[:1] if registry.get(competition_id).excluded else EDITIONS
    found = [grade_in(competition_id, edition, make(edition), folder) for edition in editions]
    assert {judgement.outcome for judgement in found} == {"rejected"}
    return [judgement.message for judgement in found]


def judged_against(
    truth: pd.DataFrame, submission: pd.DataFrame, competition_id: str, folder: Path
) -> tuple[Judgement, Judgement]:
    """What v1 and what corrected say to a submission against answers of our own."""
    truth.to_csv(folder / "answers.csv", index=False)
    submission.to_csv(folder / "submission.csv", index=False)
    first, second = (
        judge(
            GradeRequest(
                competition_id,
                folder / "submission.csv",
                prepared(competition_id, edition),
                edition,
                answers=folder / "answers.csv",
            )
        )
        for edition in EDITIONS
    )
    return first, second


def scores_against(
    truth: pd.DataFrame, submission: pd.DataFrame, competition_id: str, folder: Path
) -> list[float | None]:
    """The scores of both editions against answers of our own."""
    return [judgement.score for judgement in judged_against(truth, submission, competition_id, folder)]


def held_in_common(parts: Callable[[Edition], tuple[set[Any], set[Any]]]) -> tuple[set[Any], set[Any]]:
    """What is on both sides of the split, in v1 and in corrected; no side may be empty."""
    found = []
    for edition in EDITIONS:
        train, test = parts(edition)
        assert train
        assert test
        found.append(train & test)
    return found[0], found[1]


def assert_kept_together(parts: Callable[[Edition], tuple[set[Any], set[Any]]]) -> None:
    """Something is on both sides of the split in v1, and nothing is in corrected."""
    v1, corrected = held_in_common(parts)
    assert v1
    assert not corrected
