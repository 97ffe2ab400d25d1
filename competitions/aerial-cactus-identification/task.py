"""Aerial Cactus Identification: a row split with images from zip to zip, scored by ROC AUC."""

from mlebench_console.competitions.kit import archives
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the labelled thumbnails and move each image to the archive of its part."""
    table = labelled_table.read(job, "train.csv", needs=["id", "has_cactus"])
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(job, train, test, sample=test.assign(has_cactus=0.5))
    images = job.source("train.zip")
    members = {name.rpartition("/")[2]: name for name in archives.files_in(images)}
    for part, name in ((train, "train.zip"), (test, "test.zip")):
        renamed = {members.get(id_, f"train/{id_}"): id_ for id_ in part["id"].tolist()}
        archives.repack(job, images, job.public / name, renamed)


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of a cactus."""
    return graders.auc(case, id_column="id", target="has_cactus")
