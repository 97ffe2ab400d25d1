"""What edition corrected mends where tables of requests and molecules are given, besides `verdicts`."""

from __future__ import annotations

import json
import zipfile

import numpy as np

from mlebench_console.competitions.model import EDITIONS
from tests.competitions.mended.editions import (
    answers,
    mends,
    table,
)
from tests.competitions.prepared import prepared

PIZZA = "random-acts-of-pizza"
MOLECULES = "champs-scalar-coupling"


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
