"""INGV Volcanic Eruption Prediction: a row split of seismic segments, scored by a rounded absolute error."""

import math

import numpy as np

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation

ID, TARGET = "segment_id", "time_to_eruption"


def prepare(job: Preparation) -> None:
    """Split the labelled segments and their series."""
    table = labelled_table.read(job, "train.csv", needs=[ID, TARGET])
    train, test = labelled_table.divided(job, table)
    labelled_table.write_labels(job, train, test, sample=test[[ID]].assign(**{TARGET: 0}))
    for part, name in ((train, "train"), (test, "test")):
        placing.place_named(job, part[ID].map(str) + ".csv", job.source("train"), job.public / name)


def grade(case: Grading) -> float:
    """Return the mean absolute error as a whole number; edition v1 counts repeated segments again."""
    checks.columns_present(case.submission, [ID, TARGET])
    if case.corrected:
        rows = np.arange(len(case.answers))
        given = checks.matched_rows(case.submission, case.answers, ID)
    else:
        rows = checks.rows_asked_for(case.submission, case.answers, ID)
        given = np.arange(len(rows))
    predicted = checks.numbers(case.submission, TARGET, spelt="python")[given]
    error = metrics.mean_absolute_error(checks.numbers(case.answers, TARGET)[rows], predicted)
    if not math.isfinite(error):
        raise InvalidSubmission(f"The values of {TARGET} are too large for a mean to be taken.")
    return float(round(error))
