"""New York City Taxi Fare: a row split of rides with a fixed number of test rows, scored by RMSE."""

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

PLACES = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
COLUMNS = {
    "key": "str",
    "fare_amount": "float64",
    "pickup_datetime": "str",
    **dict.fromkeys(PLACES, "float64"),
    "passenger_count": "int64",
}
NOTE = "GCP-Coupons-Instructions.rtf"


def prepare(job: Preparation) -> None:
    """Split the rides; the train part is named labels.csv."""
    rides = labelled_table.open_rows(job, "train.csv", COLUMNS)
    test = labelled_table.divided_rows(job, rides, train_name="labels.csv", apart="key")
    sample = test[["key"]].assign(fare_amount=11.35)
    labelled_table.write_test(job, test, hidden=["fare_amount"], sample=sample)
    placing.copy_file(job, job.source(NOTE), job.public / NOTE)


def grade(case: Grading) -> float:
    """Return the root mean squared error in dollars; edition v1 pairs rides by the rank of their keys."""
    checks.columns_present(case.submission, ["key", "fare_amount"])
    checks.row_count(case.submission, case.answers, "key")
    predicted = checks.numbers(case.submission, "fare_amount", spelt="python")
    truth = checks.numbers(case.answers, "fare_amount")
    if case.corrected:
        return metrics.rmse(truth, predicted[checks.matched_rows(case.submission, case.answers, "key")])
    order = checks.sorted_rows(case.submission, "key")
    return metrics.rmse(truth[checks.sorted_rows(case.answers, "key")], predicted[order])
