"""Automated Essay Scoring 2.0: a row split of essays, scored by quadratic weighted kappa."""

import numpy as np

from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

GRADES = range(1, 7)


def prepare(job: Preparation) -> None:
    """Split the graded essays; the sample submission has random grades."""
    essays = labelled_table.read(job, "train.csv", needs=["essay_id", "full_text", "score"])
    train, test = labelled_table.divided(job, essays)
    grades = np.random.RandomState(42).randint(GRADES[0], GRADES[-1] + 1, size=len(test))
    sample = test[["essay_id"]].assign(score=grades)
    labelled_table.write_parts(job, train, test, hidden=["score"], sample=sample)


def grade(case: Grading) -> float:
    """Return the weighted kappa of the six grades."""
    return graders.kappa(case, id_column="essay_id", target="score", grades=GRADES)
