"""RANZCR CLiP: a row split of chest X-rays with exclusive and other findings, scored by mean ROC AUC."""

import numpy as np

from mlebench_console.competitions.kit import placing, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

FINDINGS = [
    *("ETT - Abnormal", "ETT - Borderline", "ETT - Normal"),
    *("NGT - Abnormal", "NGT - Borderline", "NGT - Incompletely Imaged", "NGT - Normal"),
    *("CVC - Abnormal", "CVC - Borderline"),
]
OMITTED = ["CVC - Normal", "Swan Ganz Catheter Present"]  # on Kaggle's list, but not on MLE-bench's


def prepare(job: Preparation) -> None:
    """Split the X-rays; edition corrected keeps each patient's on one side and requires all findings."""
    needs = ["StudyInstanceUID", *FINDINGS, *OMITTED, "PatientID"]
    table = labelled_table.read(job, "train.csv", needs=needs, text=["StudyInstanceUID"])
    patients = table["PatientID"] if job.corrected else None
    train, test = labelled_table.divided(job, table, patients)
    zeros = dict.fromkeys(_targets(job.corrected), 0)
    sample = test[["StudyInstanceUID"]].assign(**zeros)
    labelled_table.write_labels(job, train, test, sample=sample)
    traced = labelled_table.read(job, "train_annotations.csv", needs=["StudyInstanceUID", "label", "data"])
    traced = traced[traced["StudyInstanceUID"].isin(train["StudyInstanceUID"])]
    tables.write_csv(traced, job.public / "train_annotations.csv")
    for part, folder in ((train, "train"), (test, "test")):
        names = part["StudyInstanceUID"] + ".jpg"
        placing.place_named(job, names, job.source("train"), job.public / folder)


def _targets(corrected: bool) -> list[str]:
    return FINDINGS + OMITTED if corrected else FINDINGS


def grade(case: Grading) -> np.float64:
    """Return the mean over findings of the area under the ROC curve."""
    return np.float64(
        graders.column_auc(case, id_column="StudyInstanceUID", targets=_targets(case.corrected))
    )
