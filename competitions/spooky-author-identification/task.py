"""Spooky Author Identification: a row split of texts, scored by log loss over three authors."""

from mlebench_console.competitions.kit import checks, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation

PRIORS = {"EAP": 0.403493538995863, "HPL": 0.287808366106543, "MWS": 0.308698094897594}
AUTHORS = list(PRIORS)


def prepare(job: Preparation) -> None:
    """Split the labelled passages."""
    table = labelled_table.read(job, "train.zip", member="train.csv", needs=["id", "text", "author"])
    train, test = labelled_table.divided(job, table)
    answers = test[["id"]].join(tables.one_hot(test["author"], AUTHORS))
    labelled_table.write_parts(
        job, train, test, hidden=["author"], sample=answers.assign(**PRIORS), answers=answers
    )


def grade(case: Grading) -> float:
    """Return the mean log loss; edition v1 requires that the id is the first column."""
    checks.columns_exactly(case.submission, ["id", *AUTHORS])
    if not case.corrected and case.submission.columns[0] != "id":
        raise InvalidSubmission(f"The first column must be 'id', not '{case.submission.columns[0]}'.")
    return graders.class_log_loss(case, id_column="id", classes=AUTHORS)
