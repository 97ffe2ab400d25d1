"""Playground Series 3, Episode 18: a row split of enzyme descriptors, scored by mean ROC AUC of two labels."""

import numpy as np

from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

TARGETS = ["EC1", "EC2"]
LABELS = [f"EC{number}" for number in range(1, 7)]
COLUMNS = 38


def prepare(job: Preparation) -> None:
    """Split the labelled rows; all six labels are withheld for the test part."""
    table = labelled_table.read(job, "train.csv", needs=["id", *LABELS])
    labelled_table.expect_width(job, table, COLUMNS, "train.csv")
    train, test = labelled_table.divided(job, table)
    sample = test[["id"]].assign(**dict.fromkeys(TARGETS, 0.5))
    labelled_table.write_parts(job, train, test, hidden=LABELS, sample=sample)


def grade(case: Grading) -> float:
    """Return the mean area under the ROC curve; scores may be any finite numbers."""
    return graders.column_auc(case, id_column="id", targets=TARGETS, low=-np.inf, high=np.inf, spelt="python")
