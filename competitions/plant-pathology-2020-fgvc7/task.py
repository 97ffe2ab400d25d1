"""Plant Pathology 2020: a row split of renamed leaf photos, scored by the mean ROC AUC of four states."""

import numpy as np

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

STATES = ["healthy", "multiple_diseases", "rust", "scab"]


def prepare(job: Preparation) -> None:
    """Split the photos and number each part from 0; the files are named by the new ids."""
    table = labelled_table.read(job, "train.csv", needs=["image_id", *STATES], text=["image_id"])
    renamed: dict[str, str] = {}
    parts = {}
    for name, rows in zip(("Train", "Test"), labelled_table.divided(job, table), strict=True):
        ids = {old: f"{name}_{number}" for number, old in enumerate(rows["image_id"].unique())}
        parts[name] = rows.assign(image_id=rows["image_id"].map(ids))
        renamed |= ids
    sample = parts["Test"].assign(**dict.fromkeys(STATES, 0.25))
    labelled_table.write_parts(job, parts["Train"], parts["Test"], hidden=STATES, sample=sample)
    images, placed = job.source("images"), job.public / "images"
    placing.place(
        job, [(images / f"{old}.jpg", placed / f"{new}.jpg") for old, new in renamed.items()], "images"
    )


def grade(case: Grading) -> np.float64:
    """Return the mean area under the ROC curve of any finite scores; other columns are refused."""
    checks.columns_exactly(case.submission, ["image_id", *STATES])
    rows = checks.matched_rows(case.submission, case.answers, "image_id")
    scores = checks.numbers(case.submission, STATES, spelt="python")[rows]
    return np.float64(metrics.mean_column_auc(case.answers[STATES].to_numpy(), scores))
