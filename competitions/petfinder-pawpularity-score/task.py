"""Pawpularity: a row split of pet photos with annotations, scored by RMSE."""

import numpy as np

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

LOWEST, HIGHEST = 1, 100


def prepare(job: Preparation) -> None:
    """Split the photos; the sample submission has random scores, as Kaggle's has."""
    table = labelled_table.read(job, "train.csv", needs=["Id", "Pawpularity"], text=["Id"])
    train, test = labelled_table.divided(job, table)
    noise = np.random.default_rng(job.integer("seed")).uniform(LOWEST, HIGHEST, size=len(test))
    sample = test[["Id"]].assign(Pawpularity=noise.round(2))
    labelled_table.write_parts(job, train, test, hidden=["Pawpularity"], sample=sample)
    for part, folder in ((train, "train"), (test, "test")):
        placing.place_named(job, part["Id"] + ".jpg", job.source("train"), job.public / folder)


def grade(case: Grading) -> float:
    """Return the root mean squared error of scores from 1 to 100."""
    rows = checks.paired_rows(case, "Id", "Pawpularity")
    predicted = checks.numbers(case.submission, "Pawpularity", low=LOWEST, high=HIGHEST)[rows]
    return metrics.rmse(checks.numbers(case.answers, "Pawpularity"), predicted)
