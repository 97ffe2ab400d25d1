"""Hindi and Tamil Question Answering: a row split of questions, scored by the overlap of words."""

import numpy as np

from mlebench_console.competitions.kit import checks
from mlebench_console.competitions.kit.metrics.texts import word_jaccard
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

TARGET = "PredictionString"
TEXT = ["id", "context", "question", "answer_text", "language"]


def prepare(job: Preparation) -> None:
    """Split the questions; edition corrected keeps texts that look like missing cells, such as "NA"."""
    text = TEXT if job.corrected else None
    questions = labelled_table.read(job, "train.csv", needs=[*TEXT, "answer_start"], text=text)
    train, test = labelled_table.divided(job, questions)
    answers = test[["id", "answer_text"]].rename(columns={"answer_text": TARGET})
    labelled_table.write_parts(
        job,
        train,
        test,
        hidden=["answer_start", "answer_text"],
        sample=answers.assign(**{TARGET: "dummy text"}),
        answers=answers,
    )


def grade(case: Grading) -> float:
    """Return the mean overlap; a row without a word on both sides counts 0."""
    checks.columns_present(case.submission, ["id", TARGET])
    submission, answers = case.verbatim(TARGET)
    rows = checks.matched_rows(submission, answers, "id")
    predicted = checks.texts(submission, TARGET, missing="")
    truth = checks.texts(answers, TARGET, missing="")
    scores = word_jaccard(truth, [predicted[row] for row in rows])
    return float(np.nan_to_num(scores, nan=0.0).mean())
