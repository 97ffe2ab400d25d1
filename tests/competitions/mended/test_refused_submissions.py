"""Cells, rows and columns at which MLE-bench's graders crash are refused by both editions, which say what is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.mended.editions import (
    Cell,
    answers,
    from_answers,
    grade_in,
    grade_in_both,
    mends,
    refusals,
    sample,
    with_cell,
)

APTOS = "aptos2019-blindness-detection"
BREAST = "rsna-breast-cancer-detection"
BREATHS = "ventilator-pressure-prediction"
DOGS = "dog-breed-identification"
ESSAYS = "learning-agency-lab-automated-essay-scoring-2"
ICEBERGS = "statoil-iceberg-classifier-challenge"
LEAVES_2021 = "plant-pathology-2021-fgvc8"
NOTEBOOKS = "AI4Code"
PADDY = "paddy-disease-classification"
PETS = "petfinder-pawpularity-score"
RANZCR = "ranzcr-clip-catheter-line-classification"
SEEDLINGS = "plant-seedlings-classification"
SPEECH = "tensorflow-speech-recognition-challenge"
SPINE = "rsna-2022-cervical-spine-fracture-detection"
SPOOKY = "spooky-author-identification"
TAXI = "new-york-city-taxi-fare-prediction"


def each_cell() -> Iterator[Any]:
    """The cells of the table, each marked as showing its defect."""
    table = tomllib.loads(Path(__file__).with_name("refused_cells.toml").read_text(encoding="utf-8"))
    for row in table["cells"]:
        for cell in row["cells"]:
            yield pytest.param(row["of"], row["column"], cell, marks=mends(row["of"], row["defect"]))


@pytest.mark.parametrize(("competition_id", "column", "cell"), list(each_cell()))
def test_cells_that_made_a_grader_fail_are_refused_by_row(
    competition_id: str, column: str, cell: Cell, tmp_path: Path
) -> None:
    for message in refusals(competition_id, with_cell(competition_id, column, cell, row=1), tmp_path):
        assert message.startswith(f"Row 2: {column}")


@pytest.mark.parametrize("change", ["one less", "one more", "none"])
@pytest.mark.parametrize(
    "competition_id",
    [
        pytest.param(competition_id, marks=mends(competition_id, defect_id))
        for competition_id, defect_id in (
            (APTOS, "odd-submissions-crash"),
            (ESSAYS, "wrong-row-count-crashes"),
            (PETS, "wrong-rows-and-text-crash"),
            (RANZCR, "odd-rows-crash"),
            (SPINE, "wrong-rows-and-text-crash"),
            (TAXI, "wrong-rows-and-cells-crash"),
        )
    ],
)
def test_another_number_of_rows_is_refused_by_count(competition_id: str, change: str, tmp_path: Path) -> None:
    for edition in EDITIONS:
        submission = sample(competition_id, edition)
        rows = len(submission)
        given = {"one less": rows - 1, "one more": rows + 1, "none": 0}[change]
        judgement = grade_in(competition_id, edition, submission.iloc[np.arange(given) % rows], tmp_path)
        assert judgement.outcome == "rejected"
        has = f"{given} rows" if given else "a header and no rows"
        assert judgement.message.startswith(f"The submission has {has}, expected {rows}.")


@pytest.mark.parametrize("same_length", [True, False])
@pytest.mark.parametrize(
    ("competition_id", "id_column"),
    [
        pytest.param(APTOS, "id_code", marks=mends(APTOS, "odd-submissions-crash")),
        pytest.param(DOGS, "id", marks=mends(DOGS, "odd-ids-and-text-crash")),
        pytest.param(ICEBERGS, "id", marks=mends(ICEBERGS, "repeated-ids-and-text-crash")),
        pytest.param(SPOOKY, "id", marks=mends(SPOOKY, "wrong-ids-crash")),
    ],
)
def test_repeated_ids_are_refused(
    competition_id: str, id_column: str, same_length: bool, tmp_path: Path
) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(competition_id, edition)
        repeated = submission.iloc[[0, *range(len(submission))]]
        return repeated.iloc[:-1] if same_length else repeated

    for message in refusals(competition_id, make, tmp_path):
        assert message.startswith("Row 2: " + id_column if same_length else "The submission has")


@mends(APTOS, "odd-submissions-crash")
def test_a_missing_column_of_ids_is_refused_by_name(tmp_path: Path) -> None:
    for message in refusals(APTOS, lambda edition: sample(APTOS, edition).drop(columns="id_code"), tmp_path):
        assert message.startswith("Column 'id_code' is missing")


NOT_NAMES = " '0' is no name: the column holds numbers or True/False only; expected names as text."


@pytest.mark.parametrize(
    ("competition_id", "column", "message"),
    [
        pytest.param(competition_id, column, message, marks=mends(competition_id, defect_id))
        for competition_id, defect_id, column, message in (
            (LEAVES_2021, "numeric-labels-crash", "labels", f"Row 1: labels{NOT_NAMES}"),
            (PADDY, "numeric-labels-crash", "label", f"Row 1: label{NOT_NAMES}"),
            (SEEDLINGS, "numeric-labels-crash", "species", f"Row 1: species{NOT_NAMES}"),
            (
                SPEECH,
                "odd-labels-crash",
                "label",
                "Row 1: label '0' is not text, but a number or True/False.",
            ),
        )
    ],
)
def test_numbers_instead_of_names_are_refused(
    competition_id: str, column: str, message: str, tmp_path: Path
) -> None:
    make = from_answers(competition_id, column, lambda truth: np.arange(len(truth)))
    for refusal in refusals(competition_id, make, tmp_path):
        assert refusal.startswith(message)


@mends(BREAST, "odd-probabilities-crash")
@pytest.mark.parametrize(("value", "score"), [(None, 0), (np.inf, 1)])
def test_a_missing_or_infinite_cancer_probability_is_scored_in_v1_and_refused_in_corrected(
    value: float | None, score: float, tmp_path: Path
) -> None:
    positive = int(answers(BREAST, "v1")["cancer"].argmax())
    make = with_cell(BREAST, "cancer", value, row=positive, base=answers)
    v1, corrected = grade_in_both(BREAST, make, tmp_path)
    assert v1.score == score
    assert corrected.message.startswith(f"Row {positive + 1}: cancer")


@mends(NOTEBOOKS, "unknown-cells-crash")
@pytest.mark.parametrize("change", ["unknown", "repeated"])
def test_cells_that_don_t_belong_to_a_notebook_are_refused_by_row(change: str, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = answers(NOTEBOOKS, edition)
        cells = str(submission.loc[4, "cell_order"]).split()
        cells[-1] = "ffffffff" if change == "unknown" else cells[0]
        submission.loc[4, "cell_order"] = " ".join(cells)
        return submission

    for message in refusals(NOTEBOOKS, make, tmp_path):
        assert message.startswith("Row 5")


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
