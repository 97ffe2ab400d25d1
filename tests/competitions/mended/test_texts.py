"""Each defect that edition corrected mends, shown in both editions, for competitions of texts."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from competitions.judging import judge
from competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import grade_in_both, sample, table
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector

REVIEWS = "movie-review-sentiment-analysis-kernels-only"
TWEETS = "tweet-sentiment-extraction"
QUESTIONS = "chaii-hindi-and-tamil-question-answering"
TAGS = "facebook-recruiting-iii-keyword-extraction"
RUSSIAN = "text-normalization-challenge-russian-language"
WORDS = "billion-word-imputation"


def zipped(folder: Path, name: str, separator: str = ",") -> pd.DataFrame:
    """A table in a zip of the public folder, verbatim."""
    with zipfile.ZipFile(folder / "public" / f"{name}.zip") as archive, archive.open(name) as stream:
        return pd.read_csv(stream, sep=separator, dtype=str, keep_default_na=False)


def rewrite(path: Path, member: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Make a zip of one table anew with the table changed."""
    with zipfile.ZipFile(path) as archive:
        rows = pd.read_csv(io.BytesIO(archive.read(member)), dtype=str, keep_default_na=False)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, change(rows).to_csv(index=False))


def test_phrases_of_a_sentence_stay_together() -> None:
    shared = {}
    for edition in EDITIONS:
        train, test = (zipped(prepared(REVIEWS, edition), f"{part}.tsv", "\t") for part in ("train", "test"))
        shared[edition] = len(set(train["SentenceId"]) & set(test["SentenceId"]))
        assert list(test.columns) == ["PhraseId", "SentenceId", "Phrase"]
    assert shared["v1"] > 0
    assert shared["corrected"] == 0


@pytest.mark.parametrize("value", [None, "good", 2.5])
def test_sentiments_that_are_no_classes_are_refused_by_row(value: object, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(REVIEWS, edition).astype({"Sentiment": object})
        submission.loc[2, "Sentiment"] = value
        return submission

    for judgement in grade_in_both(REVIEWS, make, tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 3")


def test_a_tweet_without_words_on_both_sides_is_right(tmp_path: Path) -> None:
    answers, submission = tmp_path / "answers.csv", tmp_path / "submission.csv"
    columns = "textID,selected_text\n"
    answers.write_text(f"{columns}a,so happy\nb,\nc,ugh\n")
    submission.write_text(f"{columns}a,so sad\nb,\nc,UGH\n")
    v1, corrected = (
        judge(
            registry.get(TWEETS),
            submission,
            prepared=prepared(TWEETS, edition),
            edition=edition,
            answers=answers,
        )
        for edition in EDITIONS
    )
    assert v1.message == "Row 2: selected_text holds no word; write at least one in each row."
    assert corrected.score == pytest.approx((1 / 3 + 1 + 1) / 3)


def test_the_refusal_names_a_row_of_the_submission_not_of_the_answers(tmp_path: Path) -> None:
    answers, submission = tmp_path / "answers.csv", tmp_path / "submission.csv"
    answers.write_text("textID,selected_text\na,so happy\nb,\n")
    submission.write_text("textID,selected_text\na,\nb,\n")
    judgement = judge(registry.get(TWEETS), submission, prepared=prepared(TWEETS), answers=answers)
    assert judgement.message.startswith("Row 1:")


def test_answers_that_look_like_numbers_are_text(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        QUESTIONS, lambda edition: sample(QUESTIONS, edition).assign(PredictionString="1686"), tmp_path
    )
    assert v1.message == "Row 1: PredictionString 1686 is not text."
    assert corrected.score == pytest.approx(1 / 12)  # one of the twelve answers is the year 1686


def test_an_answer_that_reads_like_a_missing_cell_can_be_met(tmp_path: Path) -> None:
    assert "" in set(table(QUESTIONS, "v1", "private/test.csv")["PredictionString"])
    assert "null" in set(table(QUESTIONS, "corrected", "private/test.csv")["PredictionString"])
    v1, corrected = grade_in_both(
        QUESTIONS, lambda edition: table(QUESTIONS, "corrected", "private/test.csv"), tmp_path
    )
    assert v1.score == pytest.approx(11 / 12)
    assert corrected.score == 1


def test_tags_are_scored_question_by_question_and_unknown_ones_count(tmp_path: Path) -> None:
    def with_unknown(edition: Edition) -> pd.DataFrame:
        truth = table(TAGS, edition, "private/test.csv")[["Id", "Tags"]]
        return truth.assign(Tags=truth["Tags"] + " no-such-tag")

    v1, corrected = grade_in_both(TAGS, with_unknown, tmp_path)
    sizes = table(TAGS, "corrected", "private/test.csv")["Tags"].str.split().map(len)
    assert v1.score == 1
    assert corrected.score == pytest.approx((2 * sizes / (2 * sizes + 1)).mean())


def test_equal_questions_stay_together_and_keep_their_texts() -> None:
    shared = {}
    for edition in EDITIONS:
        train, test = (table(TAGS, edition, f"public/{part}.csv") for part in ("train", "test"))
        shared[edition] = len(set(train["Title"] + train["Body"]) & set(test["Title"] + test["Body"]))
        expected = ["Id", "Tags"] if edition == "corrected" else ["Id", "Title", "Body", "Tags"]
        assert list(sample(TAGS, edition).columns) == expected
    assert shared["v1"] > 0
    assert shared["corrected"] == 0


def test_a_tag_named_null_is_kept(tmp_path: Path) -> None:
    def tag_null(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(Tags="null")

    kept = {}
    for edition in EDITIONS:
        folder = prepared_after(
            lambda raw: rewrite(raw / "Train.zip", "Train.csv", tag_null), TAGS, edition, tmp_path
        )
        kept[edition] = set(pd.read_csv(folder / "public" / "train.csv", keep_default_na=False)["Tags"])
    assert kept == {"v1": {""}, "corrected": {"null"}}


def test_tags_that_look_like_numbers_are_text(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(TAGS, lambda edition: sample(TAGS, edition).assign(Tags=7), tmp_path)
    assert v1.message == "Tags holds numbers or True/False only; expected names as text."
    assert corrected.score == 0


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


def test_equal_sentences_stay_together(tmp_path: Path) -> None:
    def say_twice(rows: pd.DataFrame) -> pd.DataFrame:
        again = rows.assign(sentence_id=(rows["sentence_id"].astype(int) + 10**6).astype(str))
        return pd.concat([rows, again])

    shared = {}
    for edition in EDITIONS:
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
        shared[edition] = len(train & test)
        assert test
    assert shared["v1"] > 0
    assert shared["corrected"] == 0


def test_preparing_twice_in_one_process_gives_the_same_sentences(tmp_path: Path) -> None:
    for edition in EDITIONS:
        again = prepared_after(lambda raw: None, WORDS, edition, tmp_path)
        for name in ("private/test.csv", "private/sample_submission.csv"):
            assert (again / name).read_bytes() == (prepared(WORDS, edition) / name).read_bytes()


def test_answers_have_the_blanks_of_the_public_sentences(tmp_path: Path) -> None:
    def sentences(edition: Edition, name: str) -> pd.Series:
        return table(WORDS, edition, name)["sentence"]

    assert sentences("v1", "private/test.csv").str.contains("  ").any()
    assert not sentences("corrected", "private/test.csv").str.contains("  ").any()
    holed = {edition: sentences(edition, "private/sample_submission.csv").tolist() for edition in EDITIONS}
    assert holed["v1"] == holed["corrected"]

    def right(edition: Edition) -> pd.DataFrame:
        return table(WORDS, "corrected", "private/test.csv")

    v1, corrected = grade_in_both(WORDS, right, tmp_path)
    assert v1.score is not None and v1.score > 0
    assert corrected.score == 0


@pytest.mark.parametrize("sentence", ["", "NA", "null", "None"])
def test_a_sentence_that_reads_like_a_missing_cell_is_scored_as_text(sentence: str, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(WORDS, edition)
        submission.loc[4, "sentence"] = sentence
        return submission

    v1, corrected = grade_in_both(WORDS, make, tmp_path)
    assert v1.message == "Row 5: sentence is empty; expected text."
    assert corrected.outcome == "scored"


def test_sentences_that_look_like_numbers_are_scored_as_text(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(WORDS, lambda edition: sample(WORDS, edition).assign(sentence=7), tmp_path)
    assert v1.message == "Row 1: sentence 7 is not text."
    truth = table(WORDS, "corrected", "private/test.csv")["sentence"]
    assert corrected.score == pytest.approx(truth.map(len).mean())


def test_an_endless_sentence_is_refused(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(WORDS, edition)
        submission.loc[1, "sentence"] = "x" * 100_001
        return submission

    for judgement in grade_in_both(WORDS, make, tmp_path):
        assert judgement.message == "Row 2: sentence is longer than 100,000 characters."


def test_sentences_are_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    raw = Vector(VECTORS / WORDS).unpack_raw(tmp_path / "raw")
    prepare = (
        "import engine, sys; engine.prepare_competition(sys.argv[1], data_dir=sys.argv[2], raw=sys.argv[3])"
    )
    subprocess.run(
        [sys.executable, "-c", prepare, WORDS, str(tmp_path / "data"), str(raw)],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        check=True,
    )
    made = (tmp_path / "data" / WORDS / "prepared" / "private" / "test.csv").read_bytes()
    assert not made.isascii()
    assert made == (prepared(WORDS) / "private" / "test.csv").read_bytes()
