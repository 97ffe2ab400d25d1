"""Billion Word Imputation: test sentences are sampled and lose one word each; scored by edit distance."""

import io
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import archives, checks, tables
from mlebench_console.competitions.kit.metrics.texts import edit_distances
from mlebench_console.competitions.raw import RawDataProblem
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation, PublicData

TRAIN, TEST = "train_v2.txt", "test_v2.txt"
HEADER = b'"id","sentence"\n'
FEWEST_WORDS = 3  # since the first and the last word stay
LONGEST = 100_000  # characters; the longest sentence has some thousand
STEP = 1 << 20


def prepare(job: Preparation) -> None:
    """Sample about one line in a hundred for the test part and remove a word from it."""
    incomplete = job.private / "sample_submission.csv"
    with ExitStack() as stack:
        train = stack.enter_context(archives.new_member(job.public / f"{TRAIN}.zip", TRAIN))
        test = stack.enter_context(incomplete.open("wb"))
        answers = stack.enter_context((job.private / "test.csv").open("wb"))
        test.write(HEADER)
        answers.write(HEADER)
        _divide(job, train, test, answers)
    with archives.new_member(job.public / f"{TEST}.zip", TEST) as stream, incomplete.open("rb") as content:
        shutil.copyfileobj(content, stream)


def _divide(job: Preparation, train: IO[bytes], test: IO[bytes], answers: IO[bytes]) -> None:
    random = np.random.RandomState(job.integer("seed"))
    draw, share = random.random_sample, job.number("test_size")
    held_out = 0
    for number, line in enumerate(_lines(job)):
        if number % STEP == 0:
            job.progress("sentences", number, 0)
        # a number is drawn for every line, as in MLE-bench, so that all lines get the same numbers
        drawn = draw() <= share and len(line.split(" ")) >= FEWEST_WORDS
        sentence = line.strip().replace('"', '""') if drawn else ""
        words = sentence.split()
        if len(words) < FEWEST_WORDS:  # not drawn, or blanks at the ends were counted as words
            train.write(line.encode())
            continue
        gap = random.randint(1, len(words) - 1)
        test.write(f'{held_out},"{" ".join(words[:gap] + words[gap + 1 :])}"\n'.encode())
        whole = " ".join(words) if job.corrected else sentence
        answers.write(f'{held_out},"{whole}"\n'.encode())
        held_out += 1


def _lines(job: Preparation) -> Iterator[str]:
    path = job.source(f"{TRAIN}.zip")
    try:
        with archives.opened_member(path, TRAIN) as stream:
            yield from io.TextIOWrapper(stream, encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RawDataProblem(f"{path} is damaged", str(error)) from error


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the sentences without their missing words, as agents are given them."""
    with archives.opened_member(data.public / f"{TEST}.zip", TEST) as stream:
        return tables.read_csv(stream, text=("sentence",) if data.corrected else None)


def grade(case: Grading) -> np.float64:
    """Return the mean number of edits; edition corrected reads every sentence as text, even one such as "NA"."""
    checks.columns_present(case.submission, ["id", "sentence"])
    submission, answers = case.verbatim("sentence")
    rows = checks.matched_rows(submission, answers, "id")
    given = checks.texts(submission, "sentence")
    longest = max(range(len(given)), key=lambda row: len(given[row]))
    if len(given[longest]) > LONGEST:
        raise InvalidSubmission(f"Row {longest + 1}: sentence is longer than {LONGEST:,} characters.")
    distances = edit_distances(checks.texts(answers, "sentence"), [given[row] for row in rows])
    return np.float64(distances.mean())
