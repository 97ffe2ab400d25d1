"""What edition corrected mends where texts are to be rated as people rated them, shown in both editions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    assert_kept_together,
    from_answers,
    grade_in_both,
    mends,
    sample,
    scores_against,
    with_cell,
)

ARENA = "lmsys-chatbot-arena"
ESSAYS = "learning-agency-lab-automated-essay-scoring-2"
PATENTS = "us-patent-phrase-to-phrase-matching"
QUESTIONS = "google-quest-challenge"


@mends(ESSAYS, "kappa-on-label-positions")
def test_grades_are_weighed_on_the_fixed_scale(tmp_path: Path) -> None:
    truth = pd.DataFrame({"essay_id": list("abcd"), "score": [1, 2, 4, 6]})
    given = truth.assign(score=[1, 4, 4, 6])
    # told as the third of the four grades that occur, the second is one step off; on the scale it is two
    assert scores_against(truth, given, ESSAYS, tmp_path) == pytest.approx([0.9, 1 - 16 / 114])


@mends(ESSAYS, "grades-off-the-scale")
@pytest.mark.parametrize("grade", [0, 7])
def test_grades_off_the_scale_are_refused(grade: int, tmp_path: Path) -> None:
    v1, corrected = grade_in_both(ESSAYS, with_cell(ESSAYS, "score", grade), tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message.startswith(f"Row 1: score '{grade}' is out of range")


@mends(ARENA, "rows-not-rescaled")
def test_probabilities_are_rescaled_as_on_kaggle(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        third = sample(ARENA, edition)
        third[[name for name in third.columns if name != "id"]] = 0.33
        return third

    v1, corrected = grade_in_both(ARENA, make, tmp_path)
    assert v1.outcome == "rejected"
    assert "the probabilities sum to 0.99" in v1.message
    assert corrected.score == pytest.approx(math.log(3))


@mends(PATENTS, "constant-sample-scores-nan")
def test_the_sample_of_similarities_has_a_score_and_a_constant_none(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(PATENTS, lambda edition: sample(PATENTS, edition), tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.score is not None and -1 <= corrected.score <= 1
    v1, corrected = grade_in_both(PATENTS, from_answers(PATENTS, "score", lambda truth: 0.5), tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.message.startswith("score is the same in every row")


@mends(PATENTS, "missing-and-infinite-give-nan")
@pytest.mark.parametrize(("value", "why"), [(None, "is empty"), (np.inf, "'inf' is not finite")])
def test_missing_and_infinite_similarities_are_refused(value: float | None, why: str, tmp_path: Path) -> None:
    v1, corrected = grade_in_both(PATENTS, with_cell(PATENTS, "score", value, base=answers), tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.message.startswith(f"Row 1: score {why}")


@mends(QUESTIONS, "ids-not-compared")
def test_ratings_are_matched_by_id(tmp_path: Path) -> None:
    foreign = from_answers(QUESTIONS, "qa_id", lambda truth: truth["qa_id"] + 10**6)
    v1, corrected = grade_in_both(QUESTIONS, foreign, tmp_path)
    assert v1.score == pytest.approx(1)
    assert corrected.outcome == "rejected"
    assert "is not among the ids asked for" in corrected.message


@mends(QUESTIONS, "nan-hides-the-other-ratings")
def test_a_constant_rating_costs_its_own_share_only_and_a_missing_one_is_refused(tmp_path: Path) -> None:
    constant = from_answers(QUESTIONS, "answer_helpful", lambda truth: 0.5)
    v1, corrected = grade_in_both(QUESTIONS, constant, tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.score == pytest.approx(29 / 30)
    missing = with_cell(QUESTIONS, "answer_helpful", None, base=answers)
    v1, corrected = grade_in_both(QUESTIONS, missing, tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.message.startswith("Row 1: answer_helpful is empty")


@mends(QUESTIONS, "text-ranked-as-strings")
def test_ratings_in_words_are_refused(tmp_path: Path) -> None:
    def in_words(truth: pd.DataFrame) -> pd.Series:
        return truth["answer_helpful"].rank(method="dense").map(lambda rank: "x" * int(rank))

    v1, corrected = grade_in_both(QUESTIONS, from_answers(QUESTIONS, "answer_helpful", in_words), tmp_path)
    assert v1.score == pytest.approx(1)  # "x", "xx" and "xxx" stand in the order of the ratings
    assert corrected.message.startswith("Row 1: answer_helpful 'x")


@mends(QUESTIONS, "questions-on-both-sides")
def test_answers_to_one_question_stay_together(tmp_path: Path) -> None:
    def ask_twice(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        for column in ("question_title", "question_body"):
            rows[column] = rows[column].iloc[np.arange(len(rows)) // 2 * 2].to_numpy()
        rows.to_csv(raw / "train.csv", index=False)

    def parts(edition: Edition) -> tuple[set[str], set[str]]:
        folder = prepared_after(ask_twice, QUESTIONS, edition, tmp_path)
        assert pd.read_csv(folder / "private" / "test.csv")["question_type_spelling"].nunique() > 1
        train, test = (pd.read_csv(folder / "public" / f"{part}.csv") for part in ("train", "test"))
        return set(train["question_title"] + train["question_body"]), set(
            test["question_title"] + test["question_body"]
        )

    assert_kept_together(parts)
