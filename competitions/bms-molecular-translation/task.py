"""Molecular Translation: a row split of drawn molecules, scored by the mean edit distance of their InChI."""

from pathlib import Path

import numpy as np

from mlebench_console.competitions.kit import checks, placing
from mlebench_console.competitions.kit.metrics.texts import edit_distances
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

EXTRA = "extra_approved_InChIs.csv"
WATER = "InChI=1S/H2O/h1H2"


def prepare(job: Preparation) -> None:
    """Split the labelled drawings."""
    table = labelled_table.read(
        job, "train_labels.csv", needs=["image_id", "InChI"], text=["image_id", "InChI"]
    )
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(
        job, train, test, sample=test[["image_id"]].assign(InChI=WATER), train_name="train_labels.csv"
    )
    placing.copy_file(job, job.source(EXTRA), job.public / EXTRA)
    raw = job.source("train")
    for part, folder in ((train, "train"), (test, "test")):
        names = [Path(id_[0], id_[1], id_[2], f"{id_}.png") for id_ in part["image_id"].drop_duplicates()]
        placing.place(job, [(raw / name, job.public / folder / name) for name in names], folder)


def grade(case: Grading) -> np.float64:
    """Return the mean edit distance; edition v1 reads an empty cell as the word nan."""
    rows = checks.paired_rows(case, "image_id", "InChI")
    table = case.source.read(text=("InChI",)) if case.corrected else case.submission
    cells = table["InChI"].tolist()
    predicted = [str(cells[row]) for row in rows]
    return np.float64(
        edit_distances([str(cell) for cell in case.answers["InChI"].tolist()], predicted).mean()
    )
