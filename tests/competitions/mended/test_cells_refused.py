"""Cells and rows at which graders crashed, but for those of pictures: both editions refuse them and say which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import Edition
from tests.competitions.mended.editions import (
    Cell,
    answers,
    each_cell,
    grade_in_both,
    mends,
    refusals,
    sample,
    with_cell,
)

ARENA = "lmsys-chatbot-arena"
BRAIN = "hms-harmful-brain-activity-classification"
BREATHS = "ventilator-pressure-prediction"
CONTACTS = "nfl-player-contact-detection"
COVID = "siim-covid19-detection"
DRIVES = "smartphone-decimeter-2022"
DRIVING = "3d-object-detection-for-autonomous-vehicles"
ENZYMES = "playground-series-s3e18"
ESSAYS = "learning-agency-lab-automated-essay-scoring-2"
FOREST = "tabular-playground-series-dec-2021"
KUZUSHIJI = "kuzushiji-recognition"
MACHINES = "tabular-playground-series-may-2022"
MOLECULES = "champs-scalar-coupling"
PATENTS = "us-patent-phrase-to-phrase-matching"
PHONEMES = "ml2021spring-hw2"
PIZZA = "random-acts-of-pizza"
QUESTIONS = "tensorflow2-question-answering"
REVIEWS = "movie-review-sentiment-analysis-kernels-only"
RNA = "stanford-covid-vaccine"
SOUNDS = "freesound-audio-tagging-2019"
TAXI = "new-york-city-taxi-fare-prediction"
VOLCANO = "predict-volcanic-eruptions-ingv-oe"
XRAY = "vinbigdata-chest-xray-abnormalities-detection"

CELLS: list[tuple[str, str, str, list[Cell]]] = [
    (ARENA, "text-cells-crash", "winner_tie", ["maybe"]),
    (BRAIN, "shares-out-of-form-crash", "lpd_vote", ["some", -1, 2]),
    (CONTACTS, "contacts-out-of-form-crash", "contact", [None, "yes", 0.5]),
    (COVID, "malformed-boxes-crash", "PredictionString", ["opacity 0.5 1 1 2", ""]),
    (COVID, "malformed-boxes-crash", "PredictionString", ["negative nan 0 0 1 1", "negative inf 0 0 1 1"]),
    (DRIVES, "text-places-crash", "LatitudeDegrees", ["north"]),
    (DRIVING, "malformed-boxes-crash", "PredictionString", ["0.5 1 1 1 1 1 1 x car"]),
    (ENZYMES, "cells-without-a-number-crash", "EC2", [None, np.inf, "yes"]),
    (ESSAYS, "cells-without-a-grade-crash", "score", [None, 2.5, "good"]),
    (FOREST, "cells-without-a-class-crash", "Cover_Type", [None, 1.5, "spruce"]),
    (KUZUSHIJI, "coordinates-that-are-no-numbers", "labels", ["U+306F 1 x", "U+306F , 1"]),
    (MACHINES, "missing-probabilities-crash", "target", [None]),
    (MOLECULES, "cells-without-a-number-crash", "scalar_coupling_constant", [None, np.inf, "1 Hz"]),
    (PATENTS, "text-cells-crash", "score", ["high"]),
    (PHONEMES, "labels-out-of-form-crash", "ClassId", [None, "sh", 1.5]),
    (PIZZA, "missing-probabilities-crash", "requester_received_pizza", [None]),
    (QUESTIONS, "spans-of-no-integers-crash", "PredictionString", ["1:x", "1.0:2", ":"]),
    (REVIEWS, "cells-without-a-class-crash", "Sentiment", [None, 2.5, "good"]),
    (RNA, "values-out-of-form-crash", "reactivity", [None, np.inf, "high"]),
    (SOUNDS, "columns-nan-and-inf-crash", "Bark", ["loud", None, np.inf]),
    (TAXI, "wrong-rows-and-cells-crash", "fare_amount", [None, np.inf, "$5"]),
    (VOLCANO, "values-out-of-form-crash", "time_to_eruption", [None, np.inf, "soon"]),
    (XRAY, "malformed-strings-crash", "PredictionString", ["", "14 1 0 0 1", "14 1 0 0 1 one"]),
    (XRAY, "malformed-strings-crash", "PredictionString", ["14 1 0 0 1 1 ", "14  1 0 0 1 1"]),
    (XRAY, "malformed-strings-crash", "PredictionString", ["nan 1 0 0 1 1"]),
]


@each_cell(CELLS)
def test_cells_that_made_a_grader_fail_are_refused_by_row(
    competition_id: str, column: str, cell: Cell, tmp_path: Path
) -> None:
    for message in refusals(competition_id, with_cell(competition_id, column, cell, row=1), tmp_path):
        assert message.startswith(f"Row 2: {column}")


@mends(BREATHS, "cells-without-a-number-crash")
@pytest.mark.parametrize("value", [None, "high"])
def test_scored_pressures_without_a_number_are_refused_by_row_and_unscored_ones_ignored(
    value: str | None, tmp_path: Path
) -> None:
    breathing_in = (answers(BREATHS, "v1")["u_out"] == 0).to_numpy()
    scored, unscored = int(np.argmax(breathing_in)), int(np.argmin(breathing_in))
    for message in refusals(BREATHS, with_cell(BREATHS, "pressure", value, row=scored), tmp_path):
        assert message.startswith(f"Row {scored + 1}: pressure")
    for judgement in grade_in_both(BREATHS, with_cell(BREATHS, "pressure", value, row=unscored), tmp_path):
        assert judgement.outcome == "scored"


@pytest.mark.parametrize("change", [-1, 1], ids=["one row less", "one row more"])
@pytest.mark.parametrize(
    "competition_id",
    [
        pytest.param(ESSAYS, marks=mends(ESSAYS, "wrong-row-count-crashes")),
        pytest.param(TAXI, marks=mends(TAXI, "wrong-rows-and-cells-crash")),
    ],
)
def test_another_number_of_rows_is_refused_by_count(competition_id: str, change: int, tmp_path: Path) -> None:
    rows = len(sample(competition_id, "v1"))

    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(competition_id, edition)
        return submission.iloc[np.arange(rows + change) % rows]

    for message in refusals(competition_id, make, tmp_path):
        assert message.startswith(f"The submission has {rows + change} rows, expected {rows}.")
