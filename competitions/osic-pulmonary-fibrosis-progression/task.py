"""OSIC Pulmonary Fibrosis: a split of patients, scored by a Laplace likelihood of their last three visits."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, placing, splits
from mlebench_console.competitions.kit.metrics.regression import laplace_log_likelihood
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation
from mlebench_console.foundation.problems import DataProblem

VISIT = ["Patient", "Weeks"]
COLUMNS = [*VISIT, "FVC", "Percent", "Age", "Sex", "SmokingStatus"]
ID = "Patient_Week"
FIRST_WEEK, LAST_WEEK = -12, 133
SCORED_VISITS = 3

Positions = npt.NDArray[np.intp]


def prepare(job: Preparation) -> None:
    """Split the patients; a test patient's first visit is public, and all weeks of a range are to be predicted."""
    visits = labelled_table.read(job, "train.csv", needs=COLUMNS, numbers=["Weeks"])
    split = splits.by_listed_group(job, visits["Patient"])
    train, test = split.of(visits)
    if job.corrected:
        test = test.drop_duplicates(VISIT)
    weeks = (train if job.corrected else test)["Weeks"]
    low, high = int(weeks.min()), int(weeks.max())
    if job.corrected:  # a range that does not depend on test visits; the few outside it are not scored
        low, high = min(low, FIRST_WEEK), max(high, LAST_WEEK)
    answers = _every_week(job, test, low, high)
    first = test.sort_values("Weeks", kind="stable").groupby("Patient", sort=True).first().reset_index()
    sample = answers[[ID]].assign(FVC=2000, Confidence=100)
    labelled_table.write_parts(job, train, first[COLUMNS], sample=sample, answers=answers)
    for part, name in ((train, "train"), (test, "test")):
        scans = [
            (job.source("train") / id_, job.public / name / id_) for id_ in part["Patient"].drop_duplicates()
        ]
        placing.place_trees(job, scans, f"{name} scans")


def _every_week(job: Preparation, test: pd.DataFrame, low: int, high: int) -> pd.DataFrame:
    patients = test["Patient"].drop_duplicates()
    grid = pd.MultiIndex.from_product([patients, range(low, high + 1)], names=VISIT).to_frame(index=False)
    answers = grid.merge(test, on=VISIT, how="left")
    if answers["Patient"].value_counts().nunique() > 1:
        raise DataProblem(
            f"{job.source('train.csv')} is not in the expected form",
            "a test patient has two visits in one week",
            "Download the competition's data again, or use edition corrected, which keeps the first of them.",
            subject=job.competition.id,
        )
    return answers.assign(Patient_Week=answers["Patient"] + "_" + answers["Weeks"].map(str), Confidence=100)


def grade(case: Grading) -> np.float64:
    """Return the mean likelihood of the scored visits; edition v1 ignores those that a submission leaves out."""
    checks.columns_present(case.submission, [ID, "FVC", "Confidence"])
    visits = np.arange(len(case.answers)) if case.form_only else _scored(case.answers)
    if case.corrected:
        given = checks.matched_rows(case.submission, case.answers, ID)[visits]
        capacity = checks.numbers(case.submission, "FVC")[given]
        deviation = checks.numbers(case.submission, "Confidence")[given]
    else:
        visits, given = _submitted(case, visits)
        capacity, deviation = _as_read(case.submission)[given].T
        deviation = np.where(np.isnan(deviation), 0.0, deviation)
        if not len(visits):
            return np.float64("nan")
    truth = checks.numbers(case.answers, "FVC", missing_ok=True)[visits]
    return np.float64(
        laplace_log_likelihood(truth, capacity, deviation, least_deviation=70, greatest_error=1000)
    )


def _scored(answers: pd.DataFrame) -> Positions:
    visits = answers[[ID]].reset_index(drop=True).loc[answers["FVC"].notna().to_numpy()]
    parts = visits[ID].str.rpartition("_")
    last = parts[2].astype(int).groupby(parts[0]).rank(method="first", ascending=False) <= SCORED_VISITS
    return last.index[last].to_numpy()


def _submitted(case: Grading, visits: Positions) -> tuple[Positions, Positions]:
    """Return the scored visits that the submission contains, and its rows for them."""
    rows = checks.rows_asked_for(case.submission, case.answers, ID, all_needed=False)
    given = np.flatnonzero(np.isin(rows, visits))
    repeated = pd.Series(rows[given]).duplicated().to_numpy()
    if repeated.any():
        row = int(given[np.argmax(repeated)])
        raise checks.InvalidCell(row, ID, case.submission[ID].iloc[row], "stands in a row before it already")
    return rows[given], given


def _as_read(table: pd.DataFrame) -> npt.NDArray[np.float64]:
    return checks.numbers(table, ["FVC", "Confidence"], missing_ok=True, infinite_ok=True, spelt="refused")
