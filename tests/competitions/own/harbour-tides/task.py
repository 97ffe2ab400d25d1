"""Harbour Tides: a row split of noted heights, scored by RMSE."""

from mlebench_console.competitions.kit import checks, metrics
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the noted hours; edition corrected keeps each harbour's on one side."""
    table = labelled_table.read(job, "tides.csv", needs=["id", "harbour", "hour", "height"])
    train, test = labelled_table.divided(job, table, table["harbour"] if job.corrected else None)
    labelled_table.write_parts(job, train, test, hidden=["height"], sample=test[["id"]].assign(height=0))


def grade(case: Grading) -> float:
    """Root mean squared error of heights."""
    checks.columns_present(case.submission, ["id", "height"])
    rows = checks.matched_rows(case.submission, case.answers, "id")
    return metrics.rmse(case.answers["height"].to_numpy(), checks.numbers(case.submission, "height")[rows])
