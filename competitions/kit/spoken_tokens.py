"""The task of telling how written tokens are spoken: a split of sentences in zips, graded by exact text.

Competitions of this kind differ in the language alone, which is the prefix of their files' names.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from competitions.kit import archives, checks, labelled_table, splits, tables
from competitions.task import Grading, Preparation

_COLUMNS = ["sentence_id", "token_id", "class", "before", "after"]
_TEXT = ["class", "before", "after"]
_UNREAD = ("test_2", "sample_submission_2")


def prepare(job: Preparation, language: str) -> None:
    """Split the sentences and number them from 0 in each part.

    Edition corrected keeps tokens that read like missing cells, such as "NA", and sentences of the
    same tokens on one side.
    """
    for name in _UNREAD:  # MLE-bench needs them to be there, so a dataset without them is not complete
        job.source(f"{language}_{name}.csv.zip")
    train_name, text = f"{language}_train.csv", _TEXT if job.corrected else None
    tokens = labelled_table.read(
        job, f"{train_name}.zip", member=train_name, needs=_COLUMNS, text=text, words=_TEXT
    )
    groups = _equal_sentences(tokens) if job.corrected else tokens["sentence_id"]
    split = splits.shuffled_groups(groups, job.number("test_size"), job.integer("seed"))
    train, test = (
        part[_COLUMNS].assign(sentence_id=pd.factorize(part["sentence_id"])[0]) for part in split.of(tokens)
    )
    ids = test["sentence_id"].map(str) + "_" + test["token_id"].map(str)
    answers = pd.DataFrame({"id": ids, "after": test["after"]})
    sample = answers.assign(after=test["before"])
    for table, name in (
        (train, train_name),
        (test[["sentence_id", "token_id", "before"]], f"{language}_test_2.csv"),
        (sample, f"{language}_sample_submission_2.csv"),
    ):
        # edition v1 holds its members as they are; the bytes of the zip itself are free
        with archives.new_member(job.public / f"{name}.zip", name, compressed=job.corrected) as stream:
            tables.write_csv(table, stream, quote_text=True)
    tables.write_csv(answers, job.private / "answers.csv", quote_text=True)
    tables.write_csv(sample, job.private / "sample_submission.csv", quote_text=True)


def _equal_sentences(tokens: pd.DataFrame) -> pd.Series:
    codes = pd.Series(pd.factorize(tokens["sentence_id"])[0], index=tokens.index)
    sentences = tokens["before"].groupby(codes, sort=True).agg("\n".join)
    return codes.map(pd.Series(pd.factorize(sentences)[0], index=sentences.index))


def grade(case: Grading) -> float:
    """The share of tokens whose spoken form is told exactly.

    In edition v1 all words for a missing cell are equal, and a column of numbers is compared as
    pandas prints it; edition corrected compares what stands in the file.
    """
    checks.columns_present(case.submission, ["id", "after"])
    submission, answers = case.verbatim("after")
    rows = checks.matched_rows(submission, answers, "id")
    return float(np.mean(np.asarray(_texts(submission)[rows] == _texts(answers))))


def _texts(table: pd.DataFrame) -> pd.api.extensions.ExtensionArray:
    column = table["after"]
    if not isinstance(column.dtype, pd.StringDtype):
        column = pd.Series(list(map(str, column)), dtype="str")
    texts: pd.api.extensions.ExtensionArray = column.fillna("nan").array
    return texts
