"""Ventilator Pressure Prediction: a split of whole breaths, scored by the error while breathing in."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, splits, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation, PublicData

COLUMNS = ["id", "breath_id", "R", "C", "time_step", "u_in", "u_out", "pressure"]


def prepare(job: Preparation) -> None:
    """Split the breaths and number the time steps of each part from 1; floats keep ten digits."""
    steps = labelled_table.read(job, "train.csv", needs=COLUMNS)
    split = splits.by_listed_group(job, steps["breath_id"])
    train, test = (part.assign(id=np.arange(1, len(part) + 1)) for part in split.of(steps))
    for table, path in (
        (train, job.public / "train.csv"),
        (test.drop(columns="pressure"), job.public / "test.csv"),
        (test, job.private / "test.csv"),
        (test[["id"]].assign(pressure=0), job.public / "sample_submission.csv"),
    ):
        tables.write_csv(table, path, float_format="%.10g")


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the time steps with their valves, which are public."""
    return data.table("test.csv", columns=("id", "u_out")).assign(pressure=0.0)


def grade(case: Grading) -> float:
    """Return the mean absolute error of the steps with a closed outlet valve; other rows may hold anything."""
    rows = checks.paired_rows(case, "id", "pressure")
    scored = (case.answers["u_out"] == 0).to_numpy()
    ignored = np.ones(len(rows), dtype=np.bool_)
    ignored[rows[scored]] = False
    predicted = checks.numbers(case.submission, "pressure", ignored=ignored, spelt="python")
    truth = checks.numbers(case.answers, "pressure")
    return metrics.mean_absolute_error(truth[scored], predicted[rows[scored]])
