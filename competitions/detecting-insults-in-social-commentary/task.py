"""Detecting Insults: Kaggle's own labelled test set, rows keyed by their text, scored by ROC AUC.

Edition corrected uses the later verification set as test, on which Kaggle's leaderboard was
decided and whose rows have an id; edition v1 uses the earlier test set.
"""

import pandas as pd

from mlebench_console.competitions.kit import placing, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

COLUMNS = ["Insult", "Date", "Comment"]
SAMPLE = "sample_submission_null.csv"


def prepare(job: Preparation) -> None:
    """Make Kaggle's test set, or its verification set, the one to predict."""
    if job.corrected:
        _prepare_verification_set(job)
        return
    train_path, solved = job.source("train.csv"), job.source("test_with_solutions.csv")
    train, test = (labelled_table.read(job, path.name, needs=COLUMNS) for path in (train_path, solved))
    _expect_columns(job, train, COLUMNS, "train.csv")
    _expect_columns(job, test, [*COLUMNS, "Usage"], "test_with_solutions.csv")
    if set(train["Comment"].dropna()) & set(test["Comment"].dropna()):
        raise job.unexpected(solved, "a comment of it is in train.csv too")
    placing.copy_file(job, train_path, job.public / "train.csv")
    placing.copy_file(job, solved, job.private / "test.csv")
    gold = test[COLUMNS]
    tables.write_csv(gold, job.private / "gold_submission.csv")
    tables.write_csv(gold.drop(columns="Insult"), job.public / "test.csv")
    tables.write_csv(gold.assign(Insult=0), job.public / SAMPLE)


def _prepare_verification_set(job: Preparation) -> None:
    sources = ("train.csv", "test_with_solutions.csv")
    labelled = [labelled_table.read(job, name, needs=COLUMNS, text=())[COLUMNS] for name in sources]
    test = labelled_table.read(job, "impermium_verification_labels.csv", needs=COLUMNS, text=())
    _expect_columns(job, test, ["id", *COLUMNS, "Usage"], "impermium_verification_labels.csv")
    labelled_table.write_parts(
        job,
        pd.concat(labelled),
        test[["id", "Date", "Comment"]],
        sample=test[["id"]].assign(Insult=0),
        answers=test,
    )
    tables.write_csv(test[["id", "Insult"]], job.private / "gold_submission.csv")


def _expect_columns(job: Preparation, table: pd.DataFrame, columns: list[str], name: str) -> None:
    if list(table.columns) != columns:
        raise job.unexpected(name, f"its columns are {list(table.columns)}, expected {columns}")


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of an insult."""
    return graders.auc(case, id_column="id" if case.corrected else "Comment", target="Insult")
