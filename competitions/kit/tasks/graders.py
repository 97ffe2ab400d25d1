"""Whole graders that many competitions share: match rows by id, check the values, compute the metric."""

from __future__ import annotations

from collections.abc import Sequence

from mlebench_console.competitions.kit import checks, metrics
from mlebench_console.competitions.kit.checks import labels
from mlebench_console.competitions.task import Grading

KAGGLE_CLIP = 1e-15


def accuracy(case: Grading, *, id_column: str, target: str) -> float:
    """Return the share of right labels, which are whole numbers or booleans."""
    rows = checks.paired_rows(case, id_column, target)
    predicted = checks.whole_numbers(case.submission, target)[rows]
    return metrics.accuracy(checks.whole_numbers(case.answers, target), predicted)


def name_accuracy(case: Grading, *, id_column: str, target: str, all_missing_ok: bool = False) -> float:
    """Return the share of right class names; a missing name is wrong, a column of numbers is refused."""
    rows = checks.paired_rows(case, id_column, target)
    labels.require_text(case.submission, target, all_missing_ok=all_missing_ok)
    predicted = case.submission[target].to_numpy(dtype=object)[rows]
    return metrics.accuracy(case.answers[target].to_numpy(dtype=object), predicted)


def macro_f1(case: Grading, *, id_column: str, target: str) -> float:
    """Return the mean F1 over classes, where a class that occurs only in the submission counts 0.

    Edition v1 cuts fractions off class numbers; edition corrected refuses them.
    """
    rows = checks.paired_rows(case, id_column, target)
    read = checks.whole_numbers if case.corrected else checks.truncated_class_numbers
    predicted = read(case.submission, target)[rows]
    return metrics.macro_f1(case.answers[target].to_numpy(), predicted)


def kappa(case: Grading, *, id_column: str, target: str, grades: range) -> float:
    """Return the quadratic weighted kappa of all grades, in edition v1 of those that occur."""
    rows = checks.paired_rows(case, id_column, target)
    predicted = checks.whole_numbers(case.submission, target)[rows]
    truth = checks.whole_numbers(case.answers, target)
    if not case.corrected:
        return metrics.quadratic_weighted_kappa(truth, predicted)
    checks.numbers(case.submission, target, low=grades[0], high=grades[-1])
    return metrics.quadratic_weighted_kappa(truth, predicted, classes=grades)


def auc(case: Grading, *, id_column: str, target: str) -> float:
    """Return the area under the ROC curve of a probability column."""
    return column_auc(case, id_column=id_column, targets=[target])


def column_auc(
    case: Grading,
    *,
    id_column: str,
    targets: Sequence[str],
    low: float = 0,
    high: float = 1,
    spelt: checks.Spelling = "pandas",
) -> float:
    """Return the mean over columns of the area under the ROC curve; scores are in [0, 1] unless bounds are given."""
    rows = checks.paired_rows(case, id_column, *targets)
    scores = checks.numbers(case.submission, targets, low=low, high=high, spelt=spelt)[rows]
    return metrics.mean_column_auc(case.answers[list(targets)].to_numpy(), scores)


def class_log_loss(
    case: Grading,
    *,
    id_column: str,
    classes: Sequence[str],
    only_these_columns: bool = False,
    sum_decimals: int | None = None,
) -> float:
    """Return the multi-class log loss against one-hot answers.

    Edition v1 requires rows that sum to one (when rounded to `sum_decimals`, if given) and clips at the
    machine epsilon; edition corrected rescales each row by its sum and clips at 1e-15, as Kaggle does.
    """
    check = checks.columns_exactly if only_these_columns else checks.columns_present
    check(case.submission, [id_column, *classes])
    rows = checks.matched_rows(case.submission, case.answers, id_column)
    true_class = case.answers[list(classes)].to_numpy().argmax(axis=1)
    if case.corrected:
        given = checks.numbers(case.submission, classes, low=0)
        return metrics.log_loss(true_class, checks.rescaled_rows(given)[rows], clip=KAGGLE_CLIP)
    given = checks.numbers(case.submission, classes, low=0, high=1)
    checks.rows_sum_to_one(given, decimals=sum_decimals)
    return metrics.log_loss(true_class, given[rows])
