"""APTOS 2019: a row split of eye photographs, scored by quadratic weighted kappa."""

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.splits import duplicates
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

GRADES = range(5)


def prepare(job: Preparation) -> None:
    """Split the photographs; edition corrected keeps those with the same bytes on one side."""
    table = labelled_table.read(job, "train.csv", needs=["id_code", "diagnosis"], text=["id_code"])
    photos = job.source("train_images")
    same = None
    if job.corrected:
        same = duplicates.same_content(job, [photos / f"{id_}.png" for id_ in table["id_code"]])
    train, test = labelled_table.divided(job, table, same)
    sample = test.assign(diagnosis=0)
    labelled_table.write_parts(job, train, test, hidden=["diagnosis"], sample=sample)
    for part, folder in ((train, "train_images"), (test, "test_images")):
        placing.place_named(job, part["id_code"] + ".png", photos, job.public / folder)


def grade(case: Grading) -> float:
    """Return the weighted kappa of the five grades."""
    return graders.kappa(case, id_column="id_code", target="diagnosis", grades=GRADES)
