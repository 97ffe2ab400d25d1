"""Leaf Classification: a row split with images by id, scored by log loss over 99 species."""

from mlebench_console.competitions.kit import archives, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the leaves; the images of both parts are in one folder."""
    table = labelled_table.read(job, "train.csv.zip", member="train.csv", needs=["id", "species"])
    train, test = labelled_table.divided(job, table)
    classes = job.competition.classes
    answers = test[["id"]].join(tables.one_hot(test["species"], classes))
    sample = answers.assign(**dict.fromkeys(classes, 1 / len(classes)))
    labelled_table.write_parts(job, train, test, hidden=["species"], sample=sample, answers=answers)
    images = {f"images/{id_}.jpg": job.public / "images" / f"{id_}.jpg" for id_ in table["id"]}
    archives.extract_as(job, job.source("images.zip"), images)
    if not job.corrected:
        (job.private / "images").mkdir()  # MLE-bench leaves this empty folder behind


def grade(case: Grading) -> float:
    """Return the mean log loss over the species; other columns are refused."""
    return graders.class_log_loss(
        case, id_column="id", classes=case.competition.classes, only_these_columns=True
    )
