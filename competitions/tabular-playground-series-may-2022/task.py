"""Tabular Playground Series, May 2022: a row split of sensor readings with new ids, scored by ROC AUC."""

import numpy as np

from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Hold out a fixed number of rows; rows get new ids, first the train rows, then the test rows."""
    table = labelled_table.read(job, "train.csv", needs=["id", "target"])
    train, test = labelled_table.divided(job, table)
    train = train.assign(id=np.arange(len(train)))
    test = test.assign(id=np.arange(len(train), len(table)))
    gold = test[["id", "target"]]
    tables.write_csv(gold, job.private / "gold_submission.csv")
    labelled_table.write_parts(job, train, test, hidden=["target"], sample=gold.assign(target=0.5))


def grade(case: Grading) -> float:
    """Return the area under the ROC curve of the probability of state 1."""
    return graders.auc(case, id_column="id", target="target")
