"""Tweet Sentiment Extraction: a row split of tweets, scored by the overlap of words with the selected text."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks
from mlebench_console.competitions.kit.metrics.texts import word_jaccard
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation, PublicData

COLUMNS = ["textID", "text", "selected_text", "sentiment"]


def prepare(job: Preparation) -> None:
    """Split the tweets, with verbatim texts in edition corrected; the sample submission is empty."""
    text = COLUMNS if job.corrected else None
    tweets = labelled_table.read(job, "train.csv", needs=COLUMNS, text=text)
    train, test = labelled_table.divided(job, tweets)
    sample = test[["textID"]].assign(selected_text="")
    labelled_table.write_parts(job, train, test, hidden=["selected_text"], sample=sample)


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the text of each tweet, so that a prediction needs words where the tweet has any."""
    shown = ("textID", "text")
    tweets = data.table("test.csv", text=("text",) if data.corrected else None, columns=shown)
    return tweets.rename(columns={"text": "selected_text"})


def grade(case: Grading) -> float:
    """Return the mean overlap; a row without any word on both sides counts 1, and is refused in edition v1."""
    checks.columns_present(case.submission, ["textID", "selected_text"])
    submission, answers = case.verbatim("selected_text")
    rows = checks.matched_rows(submission, answers, "textID")
    predicted, truth = _texts(submission), _texts(answers)
    scores = word_jaccard(truth, [predicted[row] for row in rows])
    if case.corrected:
        return float(np.nan_to_num(scores, nan=1.0).mean())
    if np.isnan(scores).any():
        row = next(row for row, text in enumerate(predicted) if not text.split())
        raise InvalidSubmission(
            f"Row {row + 1}: selected_text holds no word; write at least one in each row."
        )
    return float(scores.mean())


def _texts(table: pd.DataFrame) -> list[str]:
    column = table["selected_text"]
    return ["" if missing else str(cell) for cell, missing in zip(column, column.isna(), strict=True)]
