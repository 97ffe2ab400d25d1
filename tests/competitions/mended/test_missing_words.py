"""What edition corrected mends where a word is missing from each sentence, shown in both editions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from rapidfuzz.distance import Levenshtein

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import grade_in_both, mends, sample, table, with_cell
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector

WORDS = "billion-word-imputation"


def edits(sentences: pd.Series) -> float:
    """The mean number of edits from the answers of edition corrected."""
    truth = table(WORDS, "corrected", "private/test.csv")["sentence"]
    return sum(map(Levenshtein.distance, truth, sentences)) / len(truth)


@mends(WORDS, "split-changes-within-a-process")
@pytest.mark.parametrize("edition", EDITIONS)
def test_preparing_twice_in_one_process_gives_the_same_sentences(edition: Edition, tmp_path: Path) -> None:
    again = prepared_after(lambda raw: None, WORDS, edition, tmp_path)
    for name in ("private/test.csv", "private/sample_submission.csv"):
        assert (again / name).read_bytes() == (prepared(WORDS, edition) / name).read_bytes()


@mends(WORDS, "blanks-kept-in-the-answers")
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
    lost_blanks = edits(sentences("v1", "private/test.csv"))
    assert lost_blanks > 0
    assert v1.score == pytest.approx(lost_blanks)
    assert corrected.score == 0


@mends(WORDS, "sentences-like-missing-cells-crash")
@pytest.mark.parametrize("sentence", ["", "NA", "null", "None"])
def test_a_sentence_that_reads_like_a_missing_cell_is_scored_as_text(sentence: str, tmp_path: Path) -> None:
    make = with_cell(WORDS, "sentence", sentence, row=4)
    v1, corrected = grade_in_both(WORDS, make, tmp_path)
    what = f"{sentence!r} counts as an empty cell" if sentence else "is empty"
    assert v1.message.startswith(f"Row 5: sentence {what}; expected text.")
    assert corrected.score == pytest.approx(edits(make("corrected")["sentence"]))


@mends(WORDS, "sentences-like-missing-cells-crash")
@pytest.mark.parametrize("sentence", ["7", "2.50", "True"])
def test_sentences_that_look_like_numbers_are_scored_as_text(sentence: str, tmp_path: Path) -> None:
    submission = sample(WORDS, "corrected").assign(sentence=sentence)
    v1, corrected = grade_in_both(WORDS, lambda edition: submission, tmp_path)
    assert v1.message.startswith("Row 1: sentence ")
    assert " is not text, but a number or True/False." in v1.message
    assert corrected.score == pytest.approx(edits(submission["sentence"]))


@mends(WORDS, "encoding-from-the-locale")
@pytest.mark.parametrize("edition", EDITIONS)
def test_sentences_are_utf_8_whatever_the_locale(edition: Edition, tmp_path: Path) -> None:
    raw = Vector(VECTORS / WORDS).unpack_raw(tmp_path / "raw")
    prepare = """
import codecs, locale, mlebench_console, sys
assert codecs.lookup(locale.getencoding()).name == "ascii"
at = {"data_dir": sys.argv[2], "raw": sys.argv[3], "edition": sys.argv[4]}
print(mlebench_console.prepare_competition(sys.argv[1], **at))
"""
    made = subprocess.run(
        [sys.executable, "-c", prepare, WORDS, str(tmp_path / "data"), str(raw), edition],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    answers = (Path(made) / "private" / "test.csv").read_bytes()
    assert not answers.isascii()
    assert answers == (prepared(WORDS, edition) / "private" / "test.csv").read_bytes()
