"""What edition corrected mends where reviews, tweets, questions and spoken words are given, in both editions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.archived import rewrite, zipped
from tests.competitions.mended.editions import (
    grade_in_both,
    mends,
    sample,
    table,
)
from tests.competitions.prepared import prepared

REVIEWS = "movie-review-sentiment-analysis-kernels-only"
TWEETS = "tweet-sentiment-extraction"
QUESTIONS = "chaii-hindi-and-tamil-question-answering"
PATENTS = "us-patent-phrase-to-phrase-matching"
TAGS = "facebook-recruiting-iii-keyword-extraction"
RUSSIAN = "text-normalization-challenge-russian-language"


@pytest.mark.parametrize(
    ("competition_id", "column"),
    [
        pytest.param(REVIEWS, "Phrase", marks=mends(REVIEWS, "phrases-like-missing-cells-lost")),
        pytest.param(TWEETS, "selected_text", marks=mends(TWEETS, "texts-like-missing-cells-lost")),
        pytest.param(PATENTS, "target", marks=mends(PATENTS, "phrases-like-missing-cells-lost")),
        pytest.param(TAGS, "Tags", marks=mends(TAGS, "tag-null-read-as-missing")),
    ],
)
def test_texts_that_read_like_missing_cells_are_kept(
    competition_id: str, column: str, tmp_path: Path
) -> None:
    def say_null(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(**{column: "null"})

    def change(raw: Path) -> None:
        if competition_id == REVIEWS:
            rewrite(raw / "train.tsv.zip", "train.tsv", say_null, "\t")
        elif competition_id == TAGS:
            rewrite(raw / "Train.zip", "Train.csv", say_null)
        else:
            say_null(pd.read_csv(raw / "train.csv")).to_csv(raw / "train.csv", index=False)

    kept = {}
    for edition in EDITIONS:
        folder = prepared_after(change, competition_id, edition, tmp_path)
        if competition_id == REVIEWS:
            rows = zipped(folder, "train.tsv", "\t")
        else:
            rows = pd.read_csv(folder / "public" / "train.csv", dtype=str, keep_default_na=False)
        kept[edition] = set(rows[column])
    assert kept == {"v1": {""}, "corrected": {"null"}}


@mends(QUESTIONS, "answers-like-missing-cells-lost")
def test_an_answer_that_reads_like_a_missing_cell_can_be_met(tmp_path: Path) -> None:
    assert "" in set(table(QUESTIONS, "v1", "private/test.csv")["PredictionString"])
    assert "null" in set(table(QUESTIONS, "corrected", "private/test.csv")["PredictionString"])
    v1, corrected = grade_in_both(
        QUESTIONS, lambda edition: table(QUESTIONS, "corrected", "private/test.csv"), tmp_path
    )
    assert v1.score == pytest.approx(11 / 12)
    assert corrected.score == 1


@mends(TAGS, "texts-in-the-sample")
def test_the_sample_of_tags_holds_no_texts() -> None:
    assert list(sample(TAGS, "v1").columns) == ["Id", "Title", "Body", "Tags"]
    assert list(sample(TAGS, "corrected").columns) == ["Id", "Tags"]


@mends(RUSSIAN, "tokens-like-missing-cells-lost")
def test_tokens_that_read_like_missing_cells_are_kept(tmp_path: Path) -> None:
    for part in ("train", "test_2"):
        tokens = {
            edition: set(zipped(prepared(RUSSIAN, edition), f"ru_{part}.csv")["before"])
            for edition in EDITIONS
        }
        assert tokens["v1"] - tokens["corrected"] == {""}
        assert tokens["corrected"] - tokens["v1"] == {"NA", "null"}

    def swapped(edition: Edition) -> pd.DataFrame:
        truth = table(RUSSIAN, "corrected", "private/answers.csv")
        return truth.replace({"after": {"NA": "null", "null": ""}})

    changed = table(RUSSIAN, "corrected", "private/answers.csv")["after"].isin(["NA", "null"]).mean()
    v1, corrected = grade_in_both(RUSSIAN, swapped, tmp_path)
    assert v1.score == 1
    assert changed > 0
    assert corrected.score == pytest.approx(1 - changed)
