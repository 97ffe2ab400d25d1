"""What edition corrected mends where tables of rides, requests and molecules are given, shown in both editions."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS
from tests.competitions.mended.editions import (
    answers,
    from_answers,
    grade_in_both,
    judged_against,
    mends,
    table,
)
from tests.competitions.prepared import prepared

TAXI = "new-york-city-taxi-fare-prediction"
PIZZA = "random-acts-of-pizza"
MOLECULES = "champs-scalar-coupling"


@mends(TAXI, "keys-not-compared")
def test_rides_are_matched_by_key(tmp_path: Path) -> None:
    def another_key(truth: pd.DataFrame) -> pd.Series:
        return "x" + truth["key"]

    v1, corrected = grade_in_both(TAXI, from_answers(TAXI, "key", another_key), tmp_path)
    assert v1.score == 0
    assert corrected.message.startswith("Row 1: key 'x")

    def repeated_key(truth: pd.DataFrame) -> pd.Series:
        return truth["key"].where(truth.index != 1, truth["key"][0])

    v1, corrected = grade_in_both(TAXI, from_answers(TAXI, "key", repeated_key), tmp_path)
    assert v1.outcome == "scored"
    assert "stands in row 1 already" in corrected.message


@mends(PIZZA, "giver-tells-the-answer")
def test_who_gave_a_pizza_is_not_told() -> None:
    told = {}
    for edition in EDITIONS:
        public = prepared(PIZZA, edition) / "public"
        requests = json.loads((public / "test.json").read_text())
        with zipfile.ZipFile(public / "test.zip") as archive:
            assert archive.namelist() == ["test.json"]
            assert json.loads(archive.read("test.json")) == requests
        told[edition] = {field for request in requests for field in request}
        assert sorted(path.name for path in public.iterdir() if "test" in path.name) == [
            "test.json",
            "test.zip",
        ]
    assert told["v1"] - told["corrected"] == {"giver_username_if_known"}
    givers = [
        request["giver_username_if_known"]
        for request in json.loads((prepared(PIZZA, "v1") / "public" / "test.json").read_text())
    ]
    got = answers(PIZZA, "v1")["requester_received_pizza"]
    assert set(got[np.array(givers) != "N/A"]) == {1}


@mends(MOLECULES, "test-structures-missing")
def test_structures_of_test_molecules_are_public_and_what_is_computed_from_them_is_not() -> None:
    for edition in EDITIONS:
        public = prepared(MOLECULES, edition) / "public"
        train, test = (
            set(table(MOLECULES, edition, f"public/{part}.csv")["molecule_name"])
            for part in ("train", "test")
        )
        expected = train | test if edition == "corrected" else train
        assert set(table(MOLECULES, edition, "public/structures.csv")["molecule_name"]) == expected
        assert {path.stem for path in (public / "structures").iterdir()} == expected
        others = {path.name for path in public.glob("*.csv")} - {
            "test.csv",
            "structures.csv",
            "sample_submission.csv",
        }
        assert len(others) == 6
        for name in others:
            assert set(table(MOLECULES, edition, f"public/{name}")["molecule_name"]) == train


@mends(MOLECULES, "no-floor-for-exact-types")
def test_couplings_told_exactly_count_as_on_kaggle(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(MOLECULES, lambda edition: answers(MOLECULES, edition), tmp_path)
    assert v1.score == -math.inf
    assert corrected.score == pytest.approx(math.log(1e-9))


@mends(MOLECULES, "repeated-ids-count-again")
def test_repeated_couplings_are_refused(tmp_path: Path) -> None:
    truth = pd.DataFrame({"id": [1, 2], "type": "1JHC", "scalar_coupling_constant": [3.0, 5.0]})
    submission = pd.DataFrame({"id": [1, 2, 2], "scalar_coupling_constant": [0.0, 4.0, 4.0]})
    v1, corrected = judged_against(truth, submission, MOLECULES, tmp_path)
    assert v1.score == pytest.approx(math.log((3 + 1 + 1) / 3))
    assert corrected.message.startswith("The submission has 3 rows, expected 2.")
