"""Spaceship Titanic: a row split of one table, scored by accuracy."""

from competitions.kit import splits, tables
from competitions.kit.tables import labelled_table
from competitions.kit.tasks import graders
from competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the labelled passengers; edition corrected keeps travel groups together."""
    table = labelled_table.read(job, "train.csv", needs=["PassengerId", "Transported"])
    if job.corrected:
        groups = table["PassengerId"].str.partition("_")[0]
        split = splits.shuffled_groups(groups, job.number("test_size"), job.integer("seed"))
    else:
        split = splits.shuffled(len(table), job.number("test_size"), job.integer("seed"))
    train, test = split.of(table)
    tables.write_csv(train, job.public / "train.csv")
    tables.write_csv(test.drop(columns="Transported"), job.public / "test.csv")
    tables.write_csv(test, job.private / "test.csv")
    sample = test[["PassengerId"]].assign(Transported=False)
    tables.write_csv(sample, job.public / "sample_submission.csv")


def grade(case: Grading) -> float:
    """The share of passengers whose fate is told right."""
    return graders.accuracy(case, id_column="PassengerId", target="Transported")
