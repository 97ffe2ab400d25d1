"""Dog Breed Identification: a row split of photographs, scored by log loss over 120 breeds."""

from mlebench_console.competitions.kit import placing, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the labelled photographs."""
    table = labelled_table.read(job, "labels.csv", needs=["id", "breed"], text=["id", "breed"])
    train, test = labelled_table.divided(job, table)
    breeds = job.competition.classes
    answers = test[["id"]].join(tables.one_hot(test["breed"], breeds))
    sample = answers.assign(**dict.fromkeys(breeds, 1 / len(breeds)))
    labelled_table.write_labels(job, train, answers, sample=sample, train_name="labels.csv")
    for part, folder in ((train, "train"), (test, "test")):
        placing.place_named(job, part["id"] + ".jpg", job.source("train"), job.public / folder)


def grade(case: Grading) -> float:
    """Return the mean log loss over the breeds."""
    return graders.class_log_loss(case, id_column="id", classes=case.competition.classes)
