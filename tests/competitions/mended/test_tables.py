"""Each defect that edition corrected mends, shown in both editions, for competitions of tables and numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from competitions import registry
from competitions.judging import judge
from competitions.kit.metrics import quadratic_weighted_kappa
from competitions.model import EDITIONS, Edition
from foundation.problems import UsageProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, grade_in, grade_in_both, sample, table
from tests.competitions.prepared import prepared

TOXIC = "jigsaw-toxic-comment-classification-challenge"
BIAS = "jigsaw-unintended-bias-in-toxicity-classification"
ESSAYS = "learning-agency-lab-automated-essay-scoring-2"
ARENA = "lmsys-chatbot-arena"
TAXI = "new-york-city-taxi-fare-prediction"
ENZYMES = "playground-series-s3e18"
FOREST = "tabular-playground-series-dec-2021"
MACHINES = "tabular-playground-series-may-2022"
PATENTS = "us-patent-phrase-to-phrase-matching"
RATINGS = "google-quest-challenge"
BREATHS = "ventilator-pressure-prediction"
PIZZA = "random-acts-of-pizza"
MOLECULES = "champs-scalar-coupling"
BASKETS = "h-and-m-personalized-fashion-recommendations"
ENGLISH = "text-normalization-challenge-english-language"


@pytest.mark.parametrize(
    ("competition_id", "column", "value"),
    [
        (ESSAYS, "score", None),
        (ESSAYS, "score", 2.5),
        (ESSAYS, "score", "good"),
        (ARENA, "winner_tie", "maybe"),
        (TAXI, "fare_amount", None),
        (TAXI, "fare_amount", np.inf),
        (TAXI, "fare_amount", "$5"),
        (ENZYMES, "EC2", None),
        (ENZYMES, "EC2", np.inf),
        (ENZYMES, "EC2", "yes"),
        (FOREST, "Cover_Type", None),
        (FOREST, "Cover_Type", "spruce"),
        (FOREST, "Cover_Type", 1.5),
        (MACHINES, "target", None),
        (PATENTS, "score", "high"),
        (PIZZA, "requester_received_pizza", None),
        (MOLECULES, "scalar_coupling_constant", None),
        (MOLECULES, "scalar_coupling_constant", np.inf),
        (MOLECULES, "scalar_coupling_constant", "1 Hz"),
    ],
)
def test_what_made_a_grader_fail_is_refused_by_row(
    competition_id: str, column: str, value: object, tmp_path: Path
) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(competition_id, edition)
        submission[column] = submission[column].astype(object)
        submission.loc[1, column] = value
        return submission

    for judgement in grade_in_both(competition_id, make, tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith(f"Row 2: {column}")


@pytest.mark.parametrize("value", [None, "high"])
def test_a_scored_pressure_that_is_no_number_is_refused_and_an_unscored_one_ignored(
    value: object, tmp_path: Path
) -> None:
    for scored, outcome in ((True, "rejected"), (False, "scored")):

        def make(edition: Edition, scored: bool = scored) -> pd.DataFrame:
            truth = answers(BREATHS, edition)
            row = int(np.argmax((truth["u_out"] == 0) == scored))
            submission = truth[["id", "pressure"]].astype({"pressure": object})
            submission.loc[row, "pressure"] = value
            return submission

        for judgement in grade_in_both(BREATHS, make, tmp_path):
            assert judgement.outcome == outcome, judgement


@pytest.mark.parametrize("competition_id", [ESSAYS, TAXI, BIAS, TOXIC])
def test_a_missing_row_is_refused_by_count(competition_id: str, tmp_path: Path) -> None:
    for edition in EDITIONS:
        if edition == "corrected" and registry.get(competition_id).excluded:
            continue
        judgement = grade_in(competition_id, edition, sample(competition_id, edition)[1:], tmp_path)
        assert judgement.outcome == "rejected"
        assert "rows, expected" in judgement.message


@pytest.mark.parametrize("competition_id", [TOXIC, BIAS, ENGLISH])
def test_what_no_split_can_mend_is_left_out_with_the_reason(competition_id: str, tmp_path: Path) -> None:
    competition = registry.get(competition_id)
    path = tmp_path / "submission.csv"
    sample(competition_id, "v1").to_csv(path, index=False)
    folder = prepared(competition_id, "v1")
    assert judge(competition, path, prepared=folder).outcome == "scored"
    with pytest.raises(UsageProblem, match="not part of edition corrected") as caught:
        judge(competition, path, prepared=folder, edition="corrected")
    assert competition.excluded and competition.excluded in str(caught.value)


def test_an_extra_column_and_unknown_ids_of_comments_are_told(tmp_path: Path) -> None:
    submission = sample(TOXIC, "v1")
    extra = grade_in(TOXIC, "v1", submission.assign(note="x"), tmp_path)
    assert extra.message.startswith("Column 'note' is not expected")
    submission.loc[2, "id"] = "ffffffffffffffff"
    assert grade_in(TOXIC, "v1", submission, tmp_path).message.startswith("Row 3: id 'ffff")


def test_inverted_toxicity_is_refused_where_the_metric_fails(tmp_path: Path) -> None:
    truth = answers(BIAS, "v1")
    inverted = truth[["id"]].assign(prediction=1 - (truth["toxicity"] >= 0.5))
    judgement = grade_in(BIAS, "v1", inverted, tmp_path)
    assert judgement.outcome == "rejected"
    assert judgement.message == "The metric is not defined for these predictions."


def test_grades_are_weighed_on_the_fixed_scale(tmp_path: Path) -> None:
    truth = pd.DataFrame({"essay_id": list("abcd"), "score": [1, 2, 4, 6]})
    given = truth.assign(score=[1, 4, 4, 6])
    paths = [tmp_path / "answers.csv", tmp_path / "submission.csv"]
    for rows, path in zip((truth, given), paths, strict=True):
        rows.to_csv(path, index=False)
    scores = [
        judge(
            registry.get(ESSAYS),
            paths[1],
            prepared=prepared(ESSAYS, edition),
            edition=edition,
            answers=paths[0],
        ).score
        for edition in EDITIONS
    ]
    sides = truth["score"].to_numpy(), given["score"].to_numpy()
    assert scores == [
        quadratic_weighted_kappa(*sides),
        quadratic_weighted_kappa(*sides, classes=range(1, 7)),
    ]
    assert scores[0] != pytest.approx(scores[1])


@pytest.mark.parametrize("grade", [0, 7])
def test_grades_outside_the_scale_are_refused(grade: int, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(ESSAYS, edition)
        submission.loc[0, "score"] = grade
        return submission

    v1, corrected = grade_in_both(ESSAYS, make, tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message.startswith(f"Row 1: score {grade} is out of range")


def test_probabilities_are_rescaled_as_on_kaggle(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        third = sample(ARENA, edition)
        third[[name for name in third.columns if name != "id"]] = 0.33
        return third

    v1, corrected = grade_in_both(ARENA, make, tmp_path)
    assert "the probabilities sum to 0.99" in v1.message
    assert corrected.score == pytest.approx(math.log(3))


def test_rides_are_matched_by_key(tmp_path: Path) -> None:
    def foreign(edition: Edition) -> pd.DataFrame:
        return answers(TAXI, edition).assign(key=lambda rides: "x" + rides["key"])

    v1, corrected = grade_in_both(TAXI, foreign, tmp_path)
    assert v1.score == 0
    assert corrected.message.startswith("Row 1: key 'x")


def test_the_sample_of_similarities_has_a_score(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(PATENTS, lambda edition: sample(PATENTS, edition), tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.score is not None and -1 <= corrected.score <= 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "Row 1: score is missing"),
        (np.inf, "Row 1: score inf is not finite"),
        (0.5, "score is the same"),
    ],
)
def test_similarities_without_a_correlation_are_refused(
    value: float | None, message: str, tmp_path: Path
) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = answers(PATENTS, edition)[["id", "score"]]
        submission.loc[slice(None) if value == 0.5 else 0, "score"] = value
        return submission

    v1, corrected = grade_in_both(PATENTS, make, tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.message.startswith(message)


def test_ratings_are_matched_by_id(tmp_path: Path) -> None:
    def foreign(edition: Edition) -> pd.DataFrame:
        return answers(RATINGS, edition).assign(qa_id=lambda rows: rows["qa_id"] + 10**6)

    v1, corrected = grade_in_both(RATINGS, foreign, tmp_path)
    assert v1.score == pytest.approx(1)
    assert "is not among the ids asked for" in corrected.message


@pytest.mark.parametrize("value", [None, "high"])
def test_ratings_that_are_no_numbers_are_refused(value: object, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = answers(RATINGS, edition).astype({"answer_helpful": object})
        submission.loc[0, "answer_helpful"] = value
        return submission

    v1, corrected = grade_in_both(RATINGS, make, tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message.startswith("Row 1: answer_helpful")


def test_a_constant_rating_costs_its_own_share_only(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        RATINGS, lambda edition: answers(RATINGS, edition).assign(answer_helpful=0.5), tmp_path
    )
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.score == pytest.approx(29 / 30)


def test_answers_to_one_question_stay_together(tmp_path: Path) -> None:
    def ask_twice(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        for column in ("question_title", "question_body"):
            rows[column] = rows[column].iloc[np.arange(len(rows)) // 2 * 2].to_numpy()
        rows.to_csv(raw / "train.csv", index=False)

    shared = {}
    for edition in EDITIONS:
        folder = prepared_after(ask_twice, RATINGS, edition, tmp_path)
        train, test = (
            pd.read_csv(folder / "public" / f"{part}.csv", dtype=str) for part in ("train", "test")
        )
        titles = [set(part["question_title"] + part["question_body"]) for part in (train, test)]
        shared[edition] = len(titles[0] & titles[1])
        assert pd.read_csv(folder / "private" / "test.csv")["question_type_spelling"].nunique() > 1
    assert shared["v1"] > 0
    assert shared["corrected"] == 0


def test_who_gave_a_pizza_is_not_told() -> None:
    fields = {
        edition: set(json.loads((prepared(PIZZA, edition) / "public" / "test.json").read_text())[0])
        for edition in EDITIONS
    }
    assert fields["v1"] - fields["corrected"] == {"giver_username_if_known"}


def test_structures_of_test_molecules_are_public() -> None:
    for edition in EDITIONS:
        public = prepared(MOLECULES, edition) / "public"
        train, test = (
            set(table(MOLECULES, edition, f"public/{part}.csv")["molecule_name"])
            for part in ("train", "test")
        )
        expected = train | test if edition == "corrected" else train
        assert set(table(MOLECULES, edition, "public/structures.csv")["molecule_name"]) == expected
        assert {path.stem for path in (public / "structures").iterdir()} == expected
        assert set(table(MOLECULES, edition, "public/potential_energy.csv")["molecule_name"]) == train


def test_couplings_told_exactly_count_as_on_kaggle(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(MOLECULES, lambda edition: answers(MOLECULES, edition), tmp_path)
    assert v1.score == -math.inf
    assert corrected.score == pytest.approx(math.log(1e-9))


def test_repeated_couplings_are_refused(tmp_path: Path) -> None:
    def twice(edition: Edition) -> pd.DataFrame:
        submission = sample(MOLECULES, edition)
        return pd.concat([submission, submission[:1]])

    v1, corrected = grade_in_both(MOLECULES, twice, tmp_path)
    assert v1.outcome == "scored"
    assert "rows, expected" in corrected.message


def test_articles_keep_their_leading_zero(tmp_path: Path) -> None:
    def padded(edition: Edition) -> pd.DataFrame:
        bought = table(BASKETS, edition, "private/answers.csv")["prediction"]
        lists = bought.map(lambda cell: " ".join(dict.fromkeys(word.zfill(10) for word in cell.split())))
        customers = table(BASKETS, edition, "private/answers.csv")["customer_id"]
        return pd.DataFrame({"customer_id": customers, "prediction": lists})

    v1, corrected = grade_in_both(BASKETS, padded, tmp_path)
    assert v1.score == 0
    assert corrected.score == 1
    numbers = table(BASKETS, "corrected", "public/transactions_train.csv")["article_id"]
    assert set(numbers) <= set(table(BASKETS, "corrected", "public/articles.csv")["article_id"])
    assert not set(table(BASKETS, "v1", "public/transactions_train.csv")["article_id"]) & set(numbers)


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


def test_repeated_customers_are_refused_and_further_columns_ignored(tmp_path: Path) -> None:
    def twice(edition: Edition) -> pd.DataFrame:
        submission = sample(BASKETS, edition)
        return pd.concat([submission[:1], submission])

    v1, corrected = grade_in_both(BASKETS, twice, tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message == "Row 2: its customer has a row before it."
    v1, corrected = grade_in_both(BASKETS, lambda edition: sample(BASKETS, edition).assign(note=1), tmp_path)
    assert (v1.outcome, corrected.outcome) == ("rejected", "scored")
