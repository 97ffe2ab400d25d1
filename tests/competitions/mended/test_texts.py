"""What edition corrected mends where reviews, tweets, questions and spoken words are given, in both editions."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    assert_kept_together,
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
QUEST = "google-quest-challenge"
TAGS = "facebook-recruiting-iii-keyword-extraction"
RUSSIAN = "text-normalization-challenge-russian-language"


def zipped(folder: Path, name: str, separator: str = ",") -> pd.DataFrame:
    """A table in a zip of the public folder, verbatim."""
    with zipfile.ZipFile(folder / "public" / f"{name}.zip") as archive, archive.open(name) as stream:
        return pd.read_csv(stream, sep=separator, dtype=str, keep_default_na=False)


def rewrite(
    path: Path, member: str, change: Callable[[pd.DataFrame], pd.DataFrame], separator: str = ","
) -> None:
    """Make a zip of one table anew with the table changed."""
    with zipfile.ZipFile(path) as archive:
        rows = pd.read_csv(io.BytesIO(archive.read(member)), sep=separator, dtype=str, keep_default_na=False)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, change(rows).to_csv(sep=separator, index=False))


@mends(REVIEWS, "sentences-on-both-sides")
def test_phrases_of_a_sentence_stay_together() -> None:
    def parts(edition: Edition) -> tuple[set[str], set[str]]:
        train, test = (zipped(prepared(REVIEWS, edition), f"{part}.tsv", "\t") for part in ("train", "test"))
        assert list(test.columns) == ["PhraseId", "SentenceId", "Phrase"]
        return set(train["SentenceId"]), set(test["SentenceId"])

    assert_kept_together(parts)


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


@mends(TAGS, "repeated-questions-in-train")
def test_equal_questions_stay_together() -> None:
    def parts(edition: Edition) -> tuple[set[str], set[str]]:
        train, test = (table(TAGS, edition, f"public/{part}.csv") for part in ("train", "test"))
        return set(train["Title"] + train["Body"]), set(test["Title"] + test["Body"])

    assert_kept_together(parts)


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


@mends(RUSSIAN, "equal-sentences-on-both-sides")
def test_equal_sentences_stay_together(tmp_path: Path) -> None:
    def say_twice(rows: pd.DataFrame) -> pd.DataFrame:
        again = rows.assign(sentence_id=(rows["sentence_id"].astype(int) + 10**6).astype(str))
        return pd.concat([rows, again])

    def parts(edition: Edition) -> tuple[set[str], set[str]]:
        folder = prepared_after(
            lambda raw: rewrite(raw / "ru_train.csv.zip", "ru_train.csv", say_twice),
            RUSSIAN,
            edition,
            tmp_path,
        )
        train, test = (
            set(zipped(folder, f"ru_{part}.csv").groupby("sentence_id")["before"].agg(" ".join))
            for part in ("train", "test_2")
        )
        return train, test

    assert_kept_together(parts)


@mends(QUEST, "questions-on-both-sides")
def test_answers_to_one_question_stay_together(tmp_path: Path) -> None:
    def ask_twice(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        for column in ("question_title", "question_body"):
            rows[column] = rows[column].iloc[np.arange(len(rows)) // 2 * 2].to_numpy()
        rows.to_csv(raw / "train.csv", index=False)

    def parts(edition: Edition) -> tuple[set[str], set[str]]:
        folder = prepared_after(ask_twice, QUEST, edition, tmp_path)
        assert pd.read_csv(folder / "private" / "test.csv")["question_type_spelling"].nunique() > 1
        train, test = (pd.read_csv(folder / "public" / f"{part}.csv") for part in ("train", "test"))
        return set(train["question_title"] + train["question_body"]), set(
            test["question_title"] + test["question_body"]
        )

    assert_kept_together(parts)
