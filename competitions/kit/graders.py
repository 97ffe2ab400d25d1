"""Whole graders that many competitions share: match rows by id, check the values, compute the metric."""

from __future__ import annotations

from collections.abc import Sequence

from competitions.kit import checks, metrics
from competitions.task import Grading

KAGGLE_CLIP = 1e-15


def accuracy(case: Grading, *, id_column: str, target: str) -> float:
    """The share of right labels, which are whole numbers or booleans."""
    checks.columns_present(case.submission, [id_column, target])
    rows = checks.matched_rows(case.submission, case.answers, id_column)
    predicted = checks.whole_numbers(case.submission, target)[rows]
    return metrics.accuracy(checks.whole_numbers(case.answers, target), predicted)


def auc(case: Grading, *, id_column: str, target: str) -> float:
    """Area under the ROC curve of a probability column."""
    return column_auc(case, id_column=id_column, targets=[target])


def column_auc(case: Grading, *, id_column: str, targets: Sequence[str]) -> float:
    """The mean over probability columns of the area under the ROC curve."""
    checks.columns_present(case.submission, [id_column, *targets])
    rows = checks.matched_rows(case.submission, case.answers, id_column)
    scores = checks.numbers(case.submission, targets, low=0, high=1)[rows]
    return metrics.mean_column_auc(case.answers[list(targets)].to_numpy(), scores)


def class_log_loss(
    case: Grading, *, id_column: str, classes: Sequence[str], only_these_columns: bool = False
) -> float:
    """Multi-class log loss against one-hot answers.

    Edition v1 demands rows that sum to one and clips at the machine epsilon; edition corrected
    rescales each row by its sum and clips at 1e-15, as Kaggle does.
    """
    check = checks.columns_exactly if only_these_columns else checks.columns_present
    check(case.submission, [id_column, *classes])
    rows = checks.matched_rows(case.submission, case.answers, id_column)
    true_class = case.answers[list(classes)].to_numpy().argmax(axis=1)
    if case.corrected:
        given = checks.numbers(case.submission, classes, low=0)
        return metrics.log_loss(true_class, checks.rescaled_rows(given)[rows], clip=KAGGLE_CLIP)
    given = checks.numbers(case.submission, classes, low=0, high=1)
    checks.rows_sum_to_one(given)
    return metrics.log_loss(true_class, given[rows])
