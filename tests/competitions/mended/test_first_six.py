"""Each defect that edition corrected mends, shown in both editions, for the first six competitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from competitions.model import Edition
from tests.competitions.mended.editions import grade_in, grade_in_both, sample, table, with_cell
from tests.competitions.prepared import prepared

SPACESHIP = "spaceship-titanic"
INSULTS = "detecting-insults-in-social-commentary"
NOMAD = "nomad2018-predict-transparent-conductors"
LEAF = "leaf-classification"
CACTUS = "aerial-cactus-identification"
SPOOKY = "spooky-author-identification"


def _private(competition_id: str, edition: Edition) -> Path:
    return prepared(competition_id, edition) / "private" / "test.csv"


def travel_groups(edition: Edition, name: str) -> set[str]:
    return set(table(SPACESHIP, edition, name)["PassengerId"].str[:4])


def test_travel_groups_stay_together() -> None:
    assert travel_groups("v1", "public/train.csv") & travel_groups("v1", "public/test.csv")
    assert not travel_groups("corrected", "public/train.csv") & travel_groups("corrected", "public/test.csv")
    rows = {
        edition: sum(len(table(SPACESHIP, edition, f"public/{part}.csv")) for part in ("train", "test"))
        for edition in ("v1", "corrected")
    }
    assert rows["v1"] == rows["corrected"]


@pytest.mark.parametrize(
    ("competition_id", "column", "value"),
    [
        (SPACESHIP, "Transported", None),
        (SPACESHIP, "Transported", "Maybe"),
        (INSULTS, "Insult", None),
        (NOMAD, "bandgap_energy_ev", None),
        (NOMAD, "bandgap_energy_ev", np.inf),
        (NOMAD, "bandgap_energy_ev", "wide"),
        (NOMAD, "bandgap_energy_ev", -1.0),
        (LEAF, "Acer_Mono", "high"),
        (LEAF, "id", 987654321),
        (CACTUS, "has_cactus", None),
        (SPOOKY, "EAP", "high"),
        (SPOOKY, "id", "id99999"),
    ],
)
def test_what_made_a_grader_fail_is_refused_by_row(
    competition_id: str, column: str, value: object, tmp_path: Path
) -> None:
    for judgement in grade_in_both(competition_id, with_cell(competition_id, column, value), tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 1")


def test_insults_are_ranked_on_the_verification_set() -> None:
    first, later = table(INSULTS, "v1", "private/test.csv"), table(INSULTS, "corrected", "private/test.csv")
    assert list(first.columns) == ["Insult", "Date", "Comment", "Usage"]
    assert list(later.columns) == ["id", "Insult", "Date", "Comment", "Usage"]
    trained = table(INSULTS, "corrected", "public/train.csv")["Comment"].tolist()
    assert trained == [
        *table(INSULTS, "v1", "public/train.csv")["Comment"],
        *first["Comment"],
    ]
    assert list(table(INSULTS, "corrected", "public/test.csv").columns) == ["id", "Date", "Comment"]


def test_a_changed_comment_matters_only_where_it_is_the_key(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = table(INSULTS, edition, "private/gold_submission.csv").assign(Insult=0.5)
        submission["Comment"] = "normalised"
        return submission

    v1, corrected = grade_in_both(INSULTS, make, tmp_path)
    assert v1.outcome == "rejected"
    assert corrected.score == 0.5


def test_materials_are_matched_by_id(tmp_path: Path) -> None:
    def shuffled(edition: Edition) -> pd.DataFrame:
        return pd.read_csv(_private(NOMAD, edition)).sample(frac=1, random_state=3)

    v1, corrected = grade_in_both(NOMAD, shuffled, tmp_path)
    assert v1.score is not None and v1.score > 0
    assert corrected.score == 0

    def foreign(edition: Edition) -> pd.DataFrame:
        return sample(NOMAD, edition).assign(id=1)

    v1, corrected = grade_in_both(NOMAD, foreign, tmp_path)
    assert v1.outcome == "scored"
    assert corrected.outcome == "rejected"


@pytest.mark.parametrize("competition_id", [LEAF, SPOOKY])
def test_probabilities_are_rescaled_as_on_kaggle(competition_id: str, tmp_path: Path) -> None:
    def unscaled(edition: Edition) -> pd.DataFrame:
        submission = sample(competition_id, edition)
        submission[submission.columns[1:]] *= 0.5
        return submission

    v1, corrected = grade_in_both(competition_id, unscaled, tmp_path)
    assert v1.outcome == "rejected"
    untouched = grade_in(competition_id, "corrected", sample(competition_id, "corrected"), tmp_path)
    assert corrected.score == pytest.approx(untouched.score)


@pytest.mark.parametrize("competition_id", [LEAF, SPOOKY])
def test_probabilities_are_clipped_as_on_kaggle(competition_id: str, tmp_path: Path) -> None:
    def certain_and_wrong(edition: Edition) -> pd.DataFrame:
        answers = pd.read_csv(_private(competition_id, edition))
        answers[answers.columns[1:]] = np.roll(answers[answers.columns[1:]].to_numpy(), 1, axis=1)
        return answers

    v1, corrected = grade_in_both(competition_id, certain_and_wrong, tmp_path)
    assert v1.score == pytest.approx(-np.log(np.finfo(float).eps))
    assert corrected.score == pytest.approx(-np.log(1e-15))


def test_columns_of_authors_are_taken_by_name_in_any_order(tmp_path: Path) -> None:
    def id_last(edition: Edition) -> pd.DataFrame:
        return sample(SPOOKY, edition)[["EAP", "HPL", "MWS", "id"]]

    v1, corrected = grade_in_both(SPOOKY, id_last, tmp_path)
    assert (v1.outcome, corrected.outcome) == ("rejected", "scored")
