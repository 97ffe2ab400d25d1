"""H&M Fashion Recommendations: the last days of purchases held out, scored by MAP@12 over customers."""

from datetime import date, timedelta

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing, tables
from mlebench_console.competitions.kit.placing import checksummed
from mlebench_console.competitions.kit.tables import labelled_table, large_tables
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation

PURCHASES = "transactions_train.csv"
COLUMNS = {
    "t_dat": "str",
    "customer_id": "str",
    "article_id": "int64",
    "price": "float64",
    "sales_channel_id": "int64",
}
UNCHANGED = ["articles.csv", "customers.csv", "sample_submission.csv"]
WINDOW = timedelta(days=7)
GUESSES = 12


def prepare(job: Preparation) -> None:
    """Hold out the last eight dates in edition v1, seven in edition corrected, which keeps article ids as text."""
    text = ["t_dat", "customer_id", "article_id"] if job.corrected else []
    purchases = labelled_table.open_rows(job, PURCHASES, COLUMNS, text=text)
    try:
        last = date.fromisoformat(max(block["t_dat"].max() for block in purchases.blocks(["t_dat"])))
    except (TypeError, ValueError) as error:
        raise job.unexpected(job.source(PURCHASES), f"t_dat: {error}") from error
    first = last - WINDOW + timedelta(days=1 if job.corrected else 0)
    with checksummed.created(job.public / PURCHASES) as stream:
        held_out = large_tables.write_rest(
            purchases.blocks(),
            lambda rows: rows["t_dat"] >= first.isoformat(),  # ISO dates sort as text
            stream,
        )
    bought = held_out.sort_values("customer_id", kind="stable")
    if job.corrected:
        bought = bought.drop_duplicates(["customer_id", "article_id"])
    articles = bought["article_id"].map(str).groupby(bought["customer_id"], sort=True).agg(" ".join)
    answers = pd.DataFrame({"customer_id": articles.index, "prediction": articles.to_numpy()})
    tables.write_csv(answers, job.private / "answers.csv")
    for name in UNCHANGED:
        placing.copy_file(job, job.source(name), job.public / name)
    placing.place_tree(job, job.source("images"), job.public / "images", "images")


def grade(case: Grading) -> np.float64:
    """Return MAP@12; edition v1 pairs customers by rank and compares numbers without leading zeros."""
    submission, answers = case.verbatim("customer_id", "prediction")
    if case.corrected:
        checks.columns_present(submission, ["customer_id", "prediction"])
        repeated = submission["customer_id"].duplicated().to_numpy()
        if repeated.any():
            row = int(repeated.argmax())
            customer = submission["customer_id"].iloc[row]
            raise checks.InvalidCell(
                row, "customer_id", customer, "has a row before it", "one row per customer"
            )
    else:
        checks.columns_exactly(submission, ["customer_id", "prediction"])
    submission = submission[_scored(submission["customer_id"], answers["customer_id"])]
    lacking = len(answers) - submission["customer_id"].nunique()
    if lacking:
        raise InvalidSubmission(_lacking(case, submission["customer_id"], answers["customer_id"], lacking))
    if case.corrected:
        submission = submission.iloc[checks.matched_rows(submission, answers, "customer_id")]
    else:
        submission = submission.iloc[checks.sorted_rows(submission, "customer_id")]
        answers = answers.iloc[checks.sorted_rows(answers, "customer_id")]
    truth = [set(str(cell).split(" ")) for cell in answers["prediction"].tolist()]
    # only the scored guesses need splitting; rows after the last answer are not scored
    cells = submission["prediction"].tolist()[: len(truth)]
    guesses = [str(cell).split(" ", GUESSES)[:GUESSES] for cell in cells]
    return np.float64(metrics.map_at_k(truth, guesses, GUESSES))


def _lacking(case: Grading, given: pd.Series, wanted: pd.Series, count: int) -> str:
    if case.form_only:  # otherwise the names would reveal which customers are scored
        missing = wanted[~_scored(wanted, given)]
        return f"{checks.ids_without_rows(missing.to_numpy())} Give every customer one."
    return f"{count} customers who are asked for have no row; give every customer one."


def _scored(given: pd.Series, wanted: pd.Series) -> pd.Series:
    if isinstance(given.dtype, pd.StringDtype) and isinstance(wanted.dtype, pd.StringDtype):
        return given.isin(wanted)
    return given.astype(object).isin(wanted.tolist())  # a number differs from the text that looks like it
