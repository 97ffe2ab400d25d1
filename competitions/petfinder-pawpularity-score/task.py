"""Pawpularity: a row split of pet photos with annotations, scored by RMSE."""

import numpy as np

from competitions.kit import checks, metrics, placing, splits, tables
from competitions.task import Grading, Preparation

LOWEST, HIGHEST = 1, 100


def prepare(job: Preparation) -> None:
    """Split the photos; the sample submission holds random scores, as Kaggle's does."""
    table = tables.read_csv(job.source("train.csv"))
    split = splits.shuffled(len(table), job.number("test_size"), job.integer("seed"))
    train, test = split.of(table)
    tables.write_csv(train, job.public / "train.csv")
    tables.write_csv(test, job.private / "test.csv")
    tables.write_csv(test.drop(columns="Pawpularity"), job.public / "test.csv")
    noise = np.random.default_rng(job.integer("seed")).uniform(LOWEST, HIGHEST, size=len(test))
    sample = test[["Id"]].assign(Pawpularity=noise.round(2))
    tables.write_csv(sample, job.public / "sample_submission.csv")
    for part, folder in ((train, "train"), (test, "test")):
        placing.place_named(job, part["Id"] + ".jpg", job.source("train"), job.public / folder)


def grade(case: Grading) -> float:
    """Root mean squared error of scores from 1 to 100."""
    checks.columns_present(case.submission, ["Id", "Pawpularity"])
    rows = checks.matched_rows(case.submission, case.answers, "Id")
    predicted = checks.numbers(case.submission, "Pawpularity", low=LOWEST, high=HIGHEST)[rows]
    return metrics.rmse(checks.numbers(case.answers, "Pawpularity"), predicted)
