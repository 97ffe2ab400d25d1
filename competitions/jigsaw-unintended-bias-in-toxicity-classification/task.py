"""Unintended Bias in Toxicity: Kaggle's own private test set, scored by AUC overall and per identity group."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation, PublicData

IDENTITIES = [
    *("male", "female", "homosexual_gay_or_lesbian", "christian", "jewish", "muslim"),
    *("black", "white", "psychiatric_or_mental_illness"),
]
POWER = -5
TEST_COLUMNS = 45


def prepare(job: Preparation) -> None:
    """Use Kaggle's train table and its private test table unchanged."""
    needs = ["id", "comment_text", "toxicity", *IDENTITIES]
    test = labelled_table.read(job, "test_private_expanded.csv", needs=needs)
    labelled_table.expect_width(job, test, TEST_COLUMNS, "test_private_expanded.csv")
    placing.copy_file(job, job.source("train.csv"), job.public / "train.csv")
    placing.copy_file(job, job.source("test_private_expanded.csv"), job.private / "test.csv")
    tables.write_csv(test[["id", "comment_text"]], job.public / "test.csv")
    tables.write_csv(test[["id"]].assign(prediction=0.0), job.public / "sample_submission.csv")


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the comments to predict, all of them harmless."""
    return data.sample()[["id"]].assign(**dict.fromkeys(["toxicity", *IDENTITIES], 0.0))


def grade(case: Grading) -> float:
    """Return the mean of the overall AUC and of three power means over groups, with predictions thresholded."""
    present = [name for name in ("prediction", "toxicity") if name in case.submission.columns]
    if not present:
        checks.columns_present(case.submission, ["id", "prediction"])
    if len(present) != 1:
        raise InvalidSubmission("There must be a column 'prediction', and none named 'toxicity' beside it.")
    checks.columns_present(case.submission, ["id", *present])
    answers = case.read_answers(columns=("id", "toxicity", *IDENTITIES))
    rows = checks.matched_rows(case.submission, answers, "id")
    given = checks.numbers(case.submission, present[0], missing_ok=True, infinite_ok=True, spelt="refused")[
        rows
    ]
    claimed = (given >= 0.5).astype(np.float64)  # MLE-bench thresholds predictions too, not the truth alone
    toxic = (answers["toxicity"] >= 0.5).to_numpy()
    parts = [metrics.roc_auc(toxic, claimed)]
    flags = [(answers[identity] >= 0.5).to_numpy() for identity in IDENTITIES]
    groups = (
        flags,
        [toxic != flag for flag in flags],  # toxic comments outside the group, harmless ones in it
        [toxic == flag for flag in flags],  # toxic comments in the group, harmless ones outside it
    )
    for subsets in groups:
        parts.append(_power_mean([metrics.roc_auc(toxic[rows], claimed[rows]) for rows in subsets]))
    return float(np.mean(parts))


def _power_mean(values: list[float]) -> float:
    if 0.0 in values:
        raise InvalidSubmission("The metric is not defined for these predictions.")
    return float(np.mean(np.array(values) ** POWER) ** (1 / POWER))
