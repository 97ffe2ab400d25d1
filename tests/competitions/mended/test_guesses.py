"""What edition corrected mends where purchases are to be guessed, besides `verdicts`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    grade_in_both,
    mends,
    sample,
    table,
)

BASKETS = "h-and-m-personalized-fashion-recommendations"


def ten_digits(cell: str) -> str:
    """Distinct articles, as they are numbered in articles.csv."""
    return " ".join(dict.fromkeys(number.zfill(10) for number in cell.split()))


@mends(BASKETS, "leading-zero-lost")
def test_articles_keep_their_leading_zero(tmp_path: Path) -> None:
    def padded(edition: Edition) -> pd.DataFrame:
        bought = table(BASKETS, edition, "private/answers.csv")
        return bought.assign(prediction=bought["prediction"].map(ten_digits))

    v1, corrected = grade_in_both(BASKETS, padded, tmp_path)
    assert (v1.score, corrected.score) == (0, 1)
    v1, corrected = grade_in_both(BASKETS, lambda edition: sample(BASKETS, edition), tmp_path)
    assert v1.score == 0
    assert corrected.score is not None and corrected.score > 0
    numbers = {
        edition: set(table(BASKETS, edition, "public/transactions_train.csv")["article_id"])
        for edition in EDITIONS
    }
    articles = set(table(BASKETS, "v1", "public/articles.csv")["article_id"])
    assert not numbers["v1"] & articles
    assert numbers["corrected"] <= articles


@mends(BASKETS, "eight-dates-held-out")
def test_seven_dates_are_held_out(tmp_path: Path) -> None:
    def only_dates(raw: Path) -> None:
        rows = pd.read_csv(raw / "transactions_train.csv", dtype=str)
        dates = pd.date_range("2020-09-03", "2020-09-22").strftime("%Y-%m-%d")
        rows[: len(dates)].assign(t_dat=dates).to_csv(raw / "transactions_train.csv", index=False)

    last = {}
    for edition in EDITIONS:
        folder = prepared_after(only_dates, BASKETS, edition, tmp_path)
        last[edition] = pd.read_csv(folder / "public" / "transactions_train.csv")["t_dat"].max()
    assert last == {"v1": "2020-09-14", "corrected": "2020-09-15"}
