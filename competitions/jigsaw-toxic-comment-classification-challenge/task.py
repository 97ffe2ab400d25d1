"""Toxic Comment Classification: Kaggle's own train and test set, scored by mean ROC AUC of six labels."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics
from mlebench_console.competitions.kit.checks.ids import pair_up
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

LABELS = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]
COLUMNS = {
    "train": ["id", "comment_text", *LABELS],
    "test": ["id", "comment_text"],
    "test_labels": ["id", *LABELS],
    "sample_submission": ["id", *LABELS],
}


def prepare(job: Preparation) -> None:
    """Use Kaggle's tables unchanged, with the labels of the test part as answers."""
    raw = {
        name: labelled_table.read(job, f"{name}.csv.zip", member=f"{name}.csv", needs=needs)
        for name, needs in COLUMNS.items()
    }
    test_ids = sorted(map(str, raw["test"]["id"]))
    for name in ("test_labels", "sample_submission"):
        if sorted(map(str, raw[name]["id"])) != test_ids:
            raise job.unexpected(f"{name}.csv", "its ids are not those of test.csv")
    if set(map(str, raw["train"]["id"])) & set(test_ids):
        raise job.unexpected("train.csv", "an id of it is in test.csv too")
    sample = raw["sample_submission"].assign(**dict.fromkeys(LABELS, 0.5))
    labelled_table.write_parts(job, raw["train"], raw["test"], sample=sample, answers=raw["test_labels"])


def grade(case: Grading) -> float:
    """Return the mean ROC AUC; as in MLE-bench, the labels' columns count by position, not by name."""
    checks.columns_exactly(case.submission, ["id", *LABELS])
    checks.row_count(case.submission, case.answers, "id")
    if case.submission["id"].isna().any():
        raise checks.unmatched(case.submission["id"], case.answers["id"], "id")
    truth = case.answers[LABELS].to_numpy()
    scored = truth.sum(axis=1) >= 0
    columns = [name for name in case.submission.columns if name != "id"]
    rows = pair_up(case.answers["id"], case.submission["id"])
    if rows is None:
        return _grade_by_rank(case, columns, truth, scored)
    unscored = np.ones(len(rows), dtype=np.bool_)
    unscored[rows[scored]] = False
    scores = checks.numbers(case.submission, columns, ignored=unscored, spelt="python")
    return metrics.mean_column_auc(truth[scored], scores[rows[scored]])


def _grade_by_rank(
    case: Grading, columns: list[str], truth: npt.NDArray[np.int64], scored: npt.NDArray[np.bool_]
) -> float:
    """Grade a submission with repeated ids: scored rows are paired by rank if their numbers are equal."""
    ids = case.submission["id"]
    rows = np.asarray(pd.Index(case.answers["id"]).get_indexer(pd.Index(ids)), dtype=np.intp)
    if (rows < 0).any() or case.form_only or scored[rows].sum() != scored.sum():
        raise checks.unmatched(ids, case.answers["id"], "id")
    scores = checks.numbers(case.submission, columns, ignored=~scored[rows], spelt="python")
    given = scores[_ranked(case.submission, scored[rows])]
    return metrics.mean_column_auc(truth[_ranked(case.answers, scored)], given)


def _ranked(table: pd.DataFrame, scored: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    if table["id"].is_monotonic_increasing:  # then pandas leaves an index as it is
        return np.flatnonzero(scored)
    order = checks.sorted_rows(table, "id")
    return order[scored[order]]
