"""Tabular Playground Series, December 2021: a row split of forest cover data, scored by accuracy."""

from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the labelled rows."""
    table = labelled_table.read(job, "train.csv", needs=["Id", "Cover_Type"])
    train, test = labelled_table.divided(job, table)
    sample = test[["Id"]].assign(Cover_Type=2)
    labelled_table.write_parts(job, train, test, hidden=["Cover_Type"], sample=sample)


def grade(case: Grading) -> float:
    """Return the share of rows whose cover type is predicted right."""
    return graders.accuracy(case, id_column="Id", target="Cover_Type")
