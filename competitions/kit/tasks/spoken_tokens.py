"""Text normalization tasks: predict how written tokens are spoken, split by sentence, graded by exact text.

Competitions of this kind differ only in the language, which is the prefix of their file names.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import archives, checks, splits, tables
from mlebench_console.competitions.kit.tables import labelled_table, large_tables
from mlebench_console.competitions.kit.tables.large_tables import RawTable
from mlebench_console.competitions.task import Grading, Preparation, PublicData

_TEXT = ["class", "before", "after"]
_COLUMNS = {"sentence_id": "int64", "token_id": "int64", **dict.fromkeys(_TEXT, "str")}
_UNREAD = ("test_2", "sample_submission_2")


def prepare(job: Preparation, language: str) -> None:
    """Split the sentences and number them from 0 in each part.

    Edition corrected keeps tokens that look like missing cells, such as "NA", as text, and sentences of
    the same tokens in one part.
    """
    for name in _UNREAD:  # MLE-bench requires them, so a dataset without them is incomplete
        job.source(f"{language}_{name}.csv.zip")
    train_name, text = f"{language}_train.csv", _TEXT if job.corrected else ()
    tokens = labelled_table.open_rows(
        job, f"{train_name}.zip", _COLUMNS, member=train_name, text=text, words=_TEXT
    )
    sentences = pd.concat([block["sentence_id"] for block in tokens.blocks(["sentence_id"])])
    groups = _equal_sentences(tokens, sentences) if job.corrected else sentences
    split = splits.by_group(job, groups)
    numbers = np.empty(len(sentences), dtype=np.intp)
    for rows in (split.train, split.test):
        numbers[rows] = pd.factorize(sentences.iloc[rows])[0]
    in_test = np.isin(np.arange(len(sentences)), split.test)
    numbered = (block[list(_COLUMNS)].assign(sentence_id=numbers[block.index]) for block in tokens.blocks())
    with _new_member(job, train_name) as stream:
        test = large_tables.write_rest(numbered, lambda rows: in_test[rows.index], stream, quote_text=True)
    ids = test["sentence_id"].map(str) + "_" + test["token_id"].map(str)
    answers = pd.DataFrame({"id": ids, "after": test["after"]})
    sample = answers.assign(after=test["before"])
    for table, name in (
        (test[["sentence_id", "token_id", "before"]], f"{language}_test_2.csv"),
        (sample, f"{language}_sample_submission_2.csv"),
    ):
        with _new_member(job, name) as stream:
            tables.write_csv(table, stream, quote_text=True)
    tables.write_csv(answers, job.private / "answers.csv", quote_text=True)
    tables.write_csv(sample, job.private / "sample_submission.csv", quote_text=True)


def _new_member(job: Preparation, name: str) -> AbstractContextManager[IO[bytes]]:
    # edition v1 stores its members uncompressed; only the members' bytes are compared, not the zip's
    return archives.new_member(job.public / f"{name}.zip", name, compressed=job.corrected)


def _equal_sentences(tokens: RawTable, sentences: pd.Series) -> npt.NDArray[np.integer[Any]]:
    """Number the tokens so that those of sentences of the same tokens share a number.

    Sentences are compared by their number of tokens and the sum of the tokens' digests, each multiplied by a
    factor for its position.
    """
    codes = pd.factorize(sentences, use_na_sentinel=False)[0]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(starts, append=len(order))
    places = np.arange(len(order)) - np.repeat(starts, lengths)
    factors = np.random.RandomState(0).randint(0, 1 << 63, lengths.max(), dtype=np.uint64) * 2 + 1
    weighted = large_tables.digests(tokens, ["before"])[order] * factors[places][:, None]
    sums = np.add.reduceat(weighted, starts)
    table = pd.DataFrame({"length": lengths, "first": sums[:, 0], "second": sums[:, 1]})
    return table.groupby(list(table.columns), sort=False).ngroup().to_numpy()[codes]


def stand_in_answers(data: PublicData, language: str) -> pd.DataFrame:
    """Return the sample submission, which agents are given in an archive."""
    name = f"{language}_sample_submission_2.csv"
    with archives.opened_member(data.public / f"{name}.zip", name) as stream:
        return tables.read_csv(stream, text=("after",) if data.corrected else None)


def grade(case: Grading) -> float:
    """Return the share of tokens whose spoken form is predicted exactly.

    In edition v1 all words for a missing cell are equal, and a column of numbers is compared as
    pandas prints it; edition corrected compares the verbatim text.
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
