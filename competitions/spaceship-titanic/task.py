"""Spaceship Titanic: a row split of one table, scored by accuracy."""

from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the labelled passengers; edition corrected keeps travel groups together."""
    table = labelled_table.read(job, "train.csv", needs=["PassengerId", "Transported"])
    groups = table["PassengerId"].str.partition("_")[0] if job.corrected else None
    train, test = labelled_table.divided(job, table, groups)
    sample = test[["PassengerId"]].assign(Transported=False)
    labelled_table.write_parts(job, train, test, hidden=["Transported"], sample=sample)


def grade(case: Grading) -> float:
    """Return the share of passengers whose fate is predicted right."""
    return graders.accuracy(case, id_column="PassengerId", target="Transported")
