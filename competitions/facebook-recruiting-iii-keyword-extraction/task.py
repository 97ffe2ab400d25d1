"""Keyword Extraction: a split of tagged questions, scored by F1 over sets of tags."""

from mlebench_console.competitions.kit import checks, metrics
from mlebench_console.competitions.kit.checks import labels
from mlebench_console.competitions.kit.tables import labelled_table, large_tables
from mlebench_console.competitions.task import Grading, Preparation

COLUMNS = dict.fromkeys(["Id", "Title", "Body", "Tags"], "str")
GUESS = "javascript c# python php java"


def prepare(job: Preparation) -> None:
    """Split the questions; edition corrected keeps equal ones on one side and every text verbatim."""
    text = list(COLUMNS) if job.corrected else ()
    table = labelled_table.open_rows(
        job, "Train.zip", COLUMNS, member="Train.csv", text=text, words=["Id", "Tags"]
    )
    groups = large_tables.groups_of(table, ["Title", "Body"]) if job.corrected else None
    test = labelled_table.divided_rows(job, table, groups)
    sample = test[["Id"] if job.corrected else ["Id", "Title", "Body"]].assign(Tags=GUESS)
    labelled_table.write_test(job, test, hidden=["Tags"], sample=sample)


def grade(case: Grading) -> float:
    """Return F1 pooled over the tags in the answers; in edition corrected the mean F1 of the questions."""
    checks.columns_present(case.submission, ["Id", "Tags"])
    submission, answers = case.verbatim("Tags", columns=("Id", "Tags"))
    labels.require_text(submission, "Tags", all_missing_ok=True)
    rows = checks.matched_rows(submission, answers, "Id")
    truth, given = labels.coded_sets(answers["Tags"], submission["Tags"].iloc[rows])
    if case.corrected:
        return metrics.mean_row_f1(truth, given)
    return metrics.pooled_f1(truth, given.among(truth))
