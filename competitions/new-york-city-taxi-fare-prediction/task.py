"""New York City Taxi Fare: a row split of rides with a fixed number of test rows, scored by RMSE."""

from collections.abc import Iterable, Iterator

import pandas as pd

from competitions.kit import checks, labelled_table, metrics, placing
from competitions.task import Grading, Preparation
from foundation.problems import DataProblem

NOTE = "GCP-Coupons-Instructions.rtf"


def prepare(job: Preparation) -> None:
    """Split the rides; the train part is named labels.csv."""
    rides = labelled_table.open_rows(job, "train.csv", needs=["key", "fare_amount"])
    labelled_table.expect_width(job, rides, 8, "train.csv")
    train, test = labelled_table.divided_rows(job, rides)
    labelled_table.write_parts(
        job,
        _without(test["key"], train),
        test,
        hidden=["fare_amount"],
        sample=test[["key"]].assign(fare_amount=11.35),
        train_name="labels.csv",
    )
    placing.copy_file(job, job.source(NOTE), job.public / NOTE)


def _without(keys: pd.Series, train: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    held_out = set(keys.tolist())
    for rides in train:
        if not held_out.isdisjoint(rides["key"].tolist()):
            raise DataProblem("train.csv was not taken", "a key of a test ride stands there twice")
        yield rides


def grade(case: Grading) -> float:
    """The root mean squared error in dollars; edition v1 pairs rides by the rank of their keys."""
    checks.columns_present(case.submission, ["fare_amount", "key"])
    checks.row_count(case.submission, len(case.answers))
    predicted = checks.numbers(case.submission, "fare_amount", spelt="python")
    truth = checks.numbers(case.answers, "fare_amount")
    if case.corrected:
        return metrics.rmse(truth, predicted[checks.matched_rows(case.submission, case.answers, "key")])
    order = checks.sorted_rows(case.submission, "key")
    return metrics.rmse(truth[checks.sorted_rows(case.answers, "key")], predicted[order])
