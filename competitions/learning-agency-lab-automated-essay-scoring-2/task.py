"""Automated Essay Scoring 2.0: a row split of essays, scored by quadratic weighted kappa."""

import numpy as np

from mlebench_console.competitions.kit import checks, metrics
from mlebench_console.competitions.kit.tables import labelled_table
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
    """Return the weighted kappa: over the six grades in edition corrected, over those that occur in edition v1."""
    checks.columns_present(case.submission, ["essay_id", "score"])
    rows = checks.matched_rows(case.submission, case.answers, "essay_id")
    predicted = checks.whole_numbers(case.submission, "score")[rows]
    truth = checks.whole_numbers(case.answers, "score")
    if not case.corrected:
        return metrics.quadratic_weighted_kappa(truth, predicted)
    checks.numbers(case.submission, "score", low=GRADES[0], high=GRADES[-1])
    return metrics.quadratic_weighted_kappa(truth, predicted, classes=GRADES)
