"""Cells and rows at which graders of pictures, sounds and six small competitions crashed: both editions refuse them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.mended.editions import (
    Cell,
    answers,
    each_cell,
    from_answers,
    grade_in,
    grade_in_both,
    mends,
    refusals,
    sample,
    with_cell,
)

ALASKA = "alaska2-image-steganalysis"
APTOS = "aptos2019-blindness-detection"
BIRDS = "mlsp-2013-birds"
BREAST = "rsna-breast-cancer-detection"
CACTUS = "aerial-cactus-identification"
CAMERAS_2019 = "iwildcam-2019-fgvc6"
CAMERAS_2020 = "iwildcam-2020-fgvc7"
CASSAVA = "cassava-leaf-disease-classification"
CATS = "dogs-vs-cats-redux-kernels-edition"
DOGS = "dog-breed-identification"
HERBARIUM_2020 = "herbarium-2020-fgvc7"
HERBARIUM_2021 = "herbarium-2021-fgvc8"
HERBARIUM_2022 = "herbarium-2022-fgvc9"
ICEBERGS = "statoil-iceberg-classifier-challenge"
INATURALIST = "inaturalist-2019-fgvc6"
INSULTS = "detecting-insults-in-social-commentary"
LEAF = "leaf-classification"
LEAVES_2020 = "plant-pathology-2020-fgvc7"
LEAVES_2021 = "plant-pathology-2021-fgvc8"
MELANOMA = "siim-isic-melanoma-classification"
NOMAD = "nomad2018-predict-transparent-conductors"
NOTEBOOKS = "AI4Code"
PADDY = "paddy-disease-classification"
PAGES = "denoising-dirty-documents"
PETS = "petfinder-pawpularity-score"
PLANTS = "invasive-species-monitoring"
PRODUCTS = "cdiscount-image-classification-challenge"
RANZCR = "ranzcr-clip-catheter-line-classification"
SEEDLINGS = "plant-seedlings-classification"
SETI = "seti-breakthrough-listen"
SPACESHIP = "spaceship-titanic"
SPEECH = "tensorflow-speech-recognition-challenge"
SPINE = "rsna-2022-cervical-spine-fracture-detection"
SPOOKY = "spooky-author-identification"
TISSUE = "histopathologic-cancer-detection"
TUMOUR = "rsna-miccai-brain-tumor-radiogenomic-classification"
WHALE_CALLS = "the-icml-2013-whale-challenge-right-whale-redux"

CELLS: list[tuple[str, str, str, list[Cell]]] = [
    (ALASKA, "infinite-scores-crash", "Label", [np.inf, -np.inf]),
    (APTOS, "odd-submissions-crash", "diagnosis", [None, 2.5, "severe"]),
    (BIRDS, "missing-predictions-crash", "Probability", [None]),
    (BREAST, "odd-probabilities-crash", "cancer", ["likely"]),
    (CACTUS, "missing-probabilities-crash", "has_cactus", [None]),
    (CAMERAS_2019, "odd-class-numbers-crash", "Category", [None, "oak"]),
    (CAMERAS_2020, "odd-class-numbers-crash", "Category", [None, 2.5, "oak"]),
    (CASSAVA, "odd-labels-crash", "label", [None, 1.5, "healthy"]),
    (CATS, "text-labels-crash", "label", ["dog"]),
    (DOGS, "odd-ids-and-text-crash", "beagle", ["maybe"]),
    (DOGS, "odd-ids-and-text-crash", "id", ["f" * 32]),
    (HERBARIUM_2020, "odd-class-numbers-crash", "Predicted", [None, "oak"]),
    (HERBARIUM_2021, "odd-class-numbers-crash", "Predicted", [None, np.inf, "oak"]),
    (HERBARIUM_2022, "odd-class-numbers-crash", "Predicted", [None, "oak"]),
    (ICEBERGS, "repeated-ids-and-text-crash", "is_iceberg", ["ship"]),
    (INATURALIST, "odd-guesses-crash", "predicted", [None, "oak", "1,2,3", "1.0 2", "oak 3", " "]),
    (INSULTS, "missing-predictions-crash", "Insult", [None]),
    (LEAF, "odd-ids-and-text-crash", "Acer_Mono", ["high"]),
    (LEAF, "odd-ids-and-text-crash", "id", [987654321]),
    (LEAVES_2020, "odd-scores-crash", "rust", [None, "some"]),
    (MELANOMA, "missing-probabilities-crash", "target", [None]),
    (NOMAD, "odd-values-crash", "bandgap_energy_ev", [None, np.inf, "wide", -1.0, -2.0]),
    (PAGES, "odd-values-crash", "value", [None, np.inf]),
    (PETS, "wrong-rows-and-text-crash", "Pawpularity", ["cute"]),
    (PLANTS, "missing-probabilities-crash", "invasive", [None]),
    (PRODUCTS, "odd-categories-crash", "category_id", [None, 2.5, "oak"]),
    (RANZCR, "odd-rows-crash", "CVC - Abnormal", [None]),
    (SETI, "missing-values-crash", "target", [None]),
    (SPACESHIP, "odd-labels-crash", "Transported", [None, "Maybe", 0.5]),
    (SPEECH, "odd-labels-crash", "label", [None]),
    (SPINE, "wrong-rows-and-text-crash", "fractured", ["yes"]),
    (SPOOKY, "wrong-ids-crash", "id", ["id99999"]),
    (SPOOKY, "id-not-first-crashes", "EAP", ["high"]),
    (TISSUE, "missing-probabilities-crash", "label", [None]),
    (TUMOUR, "missing-predictions-crash", "MGMT_value", [None]),
    (WHALE_CALLS, "missing-probabilities-crash", "probability", [None]),
]


@each_cell(CELLS)
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
            (PETS, "wrong-rows-and-text-crash"),
            (RANZCR, "odd-rows-crash"),
            (SPINE, "wrong-rows-and-text-crash"),
        )
    ],
)
def test_another_number_of_rows_is_refused_by_count(competition_id: str, change: str, tmp_path: Path) -> None:
    for edition in EDITIONS:
        submission = sample(competition_id, edition)
        rows = len(submission)
        given = {"one less": rows - 1, "one more": rows + 1, "none": 0}[change]
        judgement = grade_in(competition_id, edition, submission.iloc[np.arange(given) % rows], tmp_path)
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


@mends(INATURALIST, "odd-guesses-crash")
def test_whole_guesses_written_as_fractions_are_refused(tmp_path: Path) -> None:
    make = from_answers(INATURALIST, "predicted", lambda truth: truth["predicted"].astype(float))
    for message in refusals(INATURALIST, make, tmp_path):
        assert message.startswith("Row 1: predicted")


@pytest.mark.parametrize(
    "competition_id",
    [
        pytest.param(HERBARIUM_2020, marks=mends(HERBARIUM_2020, "odd-class-numbers-crash")),
        pytest.param(HERBARIUM_2021, marks=mends(HERBARIUM_2021, "fractions-cut-off")),
        pytest.param(HERBARIUM_2022, marks=mends(HERBARIUM_2022, "fractions-cut-off")),
        pytest.param(CAMERAS_2019, marks=mends(CAMERAS_2019, "odd-class-numbers-crash")),
    ],
)
def test_fractions_of_classes_are_cut_off_in_v1_and_refused_in_corrected(
    competition_id: str, tmp_path: Path
) -> None:
    target = answers(competition_id, "v1").columns[1]
    fractions = from_answers(competition_id, target, lambda truth: truth[target] + 0.75)
    v1, corrected = grade_in_both(competition_id, fractions, tmp_path)
    assert v1.score == 1
    assert corrected.outcome == "rejected"
    assert corrected.message.startswith(f"Row 1: {target}")
    assert "is not a whole number" in corrected.message


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


@mends(BREAST, "odd-probabilities-crash")
def test_only_negative_cancer_probabilities_are_refused(tmp_path: Path) -> None:
    for message in refusals(BREAST, from_answers(BREAST, "cancer", lambda truth: -0.5), tmp_path):
        assert message == "Every cancer value is negative; expected probabilities from 0 to 1."


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
