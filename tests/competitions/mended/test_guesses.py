"""What edition corrected mends where lists of guesses are scored: fashion and whales, shown in both editions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    grade_in_both,
    judged_against,
    mends,
    sample,
    scores_against,
    table,
)

BASKETS = "h-and-m-personalized-fashion-recommendations"
WHALES = "whale-categorization-playground"


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


@mends(BASKETS, "answers-with-repetitions")
def test_the_answers_are_a_perfect_submission(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        BASKETS, lambda edition: table(BASKETS, edition, "private/answers.csv"), tmp_path
    )
    assert v1.score is not None and v1.score < 1
    assert corrected.score == 1


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


@mends(BASKETS, "repeated-customers-misalign-rows")
def test_repeated_customers_are_refused(tmp_path: Path) -> None:
    bought = pd.DataFrame({"customer_id": ["a", "b", "c"], "prediction": ["10", "20", "30"]})
    assert scores_against(bought, bought, BASKETS, tmp_path) == [1, 1]
    v1, corrected = judged_against(bought, bought.iloc[[0, 0, 1, 2]], BASKETS, tmp_path)
    assert v1.score == pytest.approx(1 / 3)  # b and c are given what the row before theirs says
    assert corrected.message.startswith("Row 2: customer_id ")
    assert "has a row before it" in corrected.message


@mends(WHALES, "missing-guesses-and-blanks")
@pytest.mark.parametrize(
    ("guesses", "told_by_v1", "told_by_corrected"),
    [("w_1  w_2", 1 / 3, 1 / 2), (" w_2", 1 / 2, 1), ("w_1\tw_2", 0, 1 / 2), (None, 0, 0)],
)
def test_blanks_between_guesses_take_up_no_rank(
    guesses: str | None, told_by_v1: float, told_by_corrected: float, tmp_path: Path
) -> None:
    truth = pd.DataFrame({"Image": ["a.jpg", "b.jpg"], "Id": ["w_2", "w_3"]})
    given = truth.assign(Id=pd.Series([guesses, "w_3"], dtype=object))
    assert scores_against(truth, given, WHALES, tmp_path) == pytest.approx(
        [(told_by_v1 + 1) / 2, (told_by_corrected + 1) / 2]
    )


@pytest.mark.parametrize(
    "competition_id",
    [
        pytest.param(BASKETS, marks=mends(BASKETS, "extra-columns-refused")),
        pytest.param(WHALES, marks=mends(WHALES, "surplus-columns-refused")),
    ],
)
def test_further_columns_are_ignored(competition_id: str, tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        competition_id, lambda edition: sample(competition_id, edition).assign(note=1), tmp_path
    )
    assert v1.message.startswith("Column 'note' is not expected")
    assert corrected.outcome == "scored"
