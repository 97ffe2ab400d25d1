"""RSNA Screening Mammography: a split of patients with one answer per breast, scored by probabilistic F1."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation, PublicData

SHOWN = ["site_id", "patient_id", "image_id", "laterality", "view", "age", "implant", "machine_id"]


def prepare(job: Preparation) -> None:
    """Split the patients; the answer for a breast is that of its first image."""
    table = labelled_table.read(job, "train.csv", needs=[*SHOWN, "cancer"], numbers=["cancer"])
    train, test = labelled_table.divided(job, table, table["patient_id"])
    test = test.assign(prediction_id=test["patient_id"].map(str) + "_" + test["laterality"])
    answers = test.groupby("prediction_id", sort=True)["cancer"].first().reset_index()
    sample = answers.assign(cancer=train["cancer"].mean())
    labelled_table.write_parts(job, train, test[[*SHOWN, "prediction_id"]], sample=sample, answers=answers)
    for part, folder in ((train, "train_images"), (test, "test_images")):
        paths = part["patient_id"].map(str) + "/" + part["image_id"].map(str) + ".dcm"
        placing.place_named(job, paths, job.source("train_images"), job.public / folder)


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the breasts to predict, without cancer."""
    return data.sample().assign(cancer=0)


def grade(case: Grading) -> np.float64:
    """Probabilistic F1 of probabilities clipped to 0 and 1; edition v1 scores a missing one with 0."""
    rows = checks.paired_rows(case, "prediction_id", "cancer")
    predicted = checks.numbers(
        case.submission,
        "cancer",
        missing_ok=not case.corrected,
        infinite_ok=not case.corrected,
        spelt="objects",
    )[rows]
    if (predicted < 0).all():
        raise InvalidSubmission("Every cancer value is negative; expected probabilities from 0 to 1.")
    if np.isnan(predicted).any():
        return np.float64(0.0)
    truth = checks.whole_numbers(case.answers, "cancer")
    return np.float64(metrics.probabilistic_f1(truth, predicted.clip(0, 1)))
