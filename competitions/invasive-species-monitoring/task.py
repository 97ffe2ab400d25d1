"""Invasive Species Monitoring: a row split of photos in 7z archives, scored by ROC AUC."""

import pandas as pd

from mlebench_console.competitions.kit import archives, tables
from mlebench_console.competitions.kit.archives import sevenzip
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation, PublicData

LABELS, SAMPLE = "train_labels.csv", "sample_submission.csv"


def prepare(job: Preparation) -> None:
    """Split the labelled photos; the archives of edition v1 contain only an empty folder."""
    table = labelled_table.read(job, f"{LABELS}.zip", member=LABELS, needs=["name", "invasive"])
    train, test = labelled_table.divided(job, table)
    sample = test.assign(invasive=0.5)
    for name, part in ((LABELS, train), (SAMPLE, sample)):
        with archives.new_member(job.public / f"{name}.zip", name) as stream:
            tables.write_csv(part, stream)
    tables.write_csv(test, job.private / "answers.csv")
    tables.write_csv(sample, job.private / SAMPLE)
    photos = {
        f"{folder}/{name}.jpg": f"train/{name}.jpg"
        for folder, part in (("train", train), ("test", test))
        for name in part["name"]
    }
    source, scratch = job.source("train.7z"), job.scratch / "photos"
    if job.corrected:
        sevenzip.extract_as(job, source, {old: scratch / new for new, old in photos.items()})
    for folder in ("train", "test"):
        (scratch / folder).mkdir(parents=True, exist_ok=True)
        names = [name for name in photos if name.startswith(f"{folder}/")] if job.corrected else [folder]
        files = {name: scratch / name for name in names}
        sevenzip.pack(job, job.public / f"{folder}.7z", files, compressed=False)


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the sample submission, which agents are given in an archive."""
    with archives.opened_member(data.public / f"{SAMPLE}.zip", SAMPLE) as stream:
        return tables.read_csv(stream)


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of the plant."""
    return graders.auc(case, id_column="name", target="invasive")
