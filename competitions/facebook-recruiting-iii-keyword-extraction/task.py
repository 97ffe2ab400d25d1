"""Keyword Extraction: a split of tagged questions, scored by F1 over sets of tags."""

from competitions.kit import checks, metrics
from competitions.kit.checks import labels
from competitions.kit.tables import labelled_table, row_file
from competitions.task import Grading, Preparation

COLUMNS = ["Id", "Title", "Body", "Tags"]
GUESS = "javascript c# python php java"


def prepare(job: Preparation) -> None:
    """Split the questions; edition corrected keeps equal ones on one side and every text as it is."""
    text = COLUMNS if job.corrected else ()
    rows = labelled_table.open_rows(
        job, "Train.zip", member="Train.csv", needs=COLUMNS, text=text, words=["Id", "Tags"]
    )
    labelled_table.expect_width(job, rows, len(COLUMNS), "Train.csv")
    groups = row_file.groups_of(rows, ["Title", "Body"]) if job.corrected else None
    test = labelled_table.divided_rows(job, rows, groups)
    sample = test[["Id"] if job.corrected else ["Id", "Title", "Body"]].assign(Tags=GUESS)
    labelled_table.write_test(job, test, hidden=["Tags"], sample=sample)


def grade(case: Grading) -> float:
    """F1 pooled over the tags that occur in the answers; in edition corrected the mean F1 of the questions."""
    checks.columns_present(case.submission, ["Id", "Tags"])
    submission, answers = case.verbatim("Tags", columns=("Id", "Tags"))
    labels.require_text(submission, "Tags", all_missing_ok=True)
    rows = checks.matched_rows(submission, answers, "Id")
    truth, given = labels.coded_sets(answers["Tags"], submission["Tags"].iloc[rows])
    if case.corrected:
        return metrics.mean_row_f1(truth, given)
    return metrics.pooled_f1(truth, given.among(truth))
