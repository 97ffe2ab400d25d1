"""Patent Phrase to Phrase Matching: a row split of phrase pairs, scored by Pearson's correlation."""

import numpy as np

from mlebench_console.competitions.kit import checks
from mlebench_console.competitions.kit.metrics.regression import pearson
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation

WORDS = ["id", "anchor", "target", "context"]


def prepare(job: Preparation) -> None:
    """Split the rated pairs.

    Edition corrected keeps phrases as verbatim text, and its sample submission rises row by row, because a
    constant has no correlation.
    """
    text = WORDS if job.corrected else None
    pairs = labelled_table.read(job, "train.csv", needs=[*WORDS, "score"], text=text)
    train, test = labelled_table.divided(job, pairs)
    sample = test[["id"]].assign(score=np.linspace(0, 1, len(test)) if job.corrected else 0)
    labelled_table.write_parts(job, train, test, hidden=["score"], sample=sample)


def grade(case: Grading) -> np.float64:
    """Return the correlation of similarities; edition v1 gives NaN where edition corrected refuses."""
    rows = checks.paired_rows(case, "id", "score")
    lax = not case.corrected
    predicted = checks.numbers(case.submission, "score", missing_ok=lax, infinite_ok=lax, spelt="refused")
    if case.corrected and (predicted == predicted[0]).all():
        raise InvalidSubmission("score is the same in every row; no correlation is defined for that.")
    return np.float64(pearson(checks.numbers(case.answers, "score"), predicted[rows]))
