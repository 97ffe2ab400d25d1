"""iWildCam 2019: camera-trap photos of a zip split by camera into two zips, scored by macro F1."""

from mlebench_console.competitions.kit import archives, splits, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Hold out whole cameras; the sample submission of edition v1 has a column with each row's raw position."""
    table = labelled_table.read(
        job, "train.csv", needs=["category_id", "file_name", "id", "location", "seq_id"]
    )
    split = splits.by_group(job, table["location"])
    train, test = split.of(table)
    answers = test[["id", "category_id"]].set_axis(["Id", "Category"], axis=1)
    tables.write_csv(test, job.private / "test.csv")
    tables.write_csv(train, job.public / "train.csv")
    tables.write_csv(test.drop(columns="category_id"), job.public / "test.csv")
    sample = answers.assign(Category=0)
    if not job.corrected:
        sample.insert(0, "", split.test)
    labelled_table.write_answers(job, answers, sample)
    for part, name in ((train, "train_images.zip"), (test, "test_images.zip")):
        members = {f"{id_}.jpg" for id_ in part["id"]}  # an image may have several rows
        archives.repack(job, job.source("train_images.zip"), job.public / name, members)


def grade(case: Grading) -> float:
    """Return the macro F1 of the animals."""
    return graders.macro_f1(case, id_column="Id", target="Category")
