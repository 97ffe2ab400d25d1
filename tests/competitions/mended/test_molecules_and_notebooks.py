"""Mended defects of drawn molecules, whose cells are texts, and of notebooks, whose number was fixed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.mended.editions import answers, grade_in_both, judged_against, mends, scores_against
from tests.conformance.trees import VECTORS, Vector

MOLECULES = "bms-molecular-translation"
NOTEBOOKS = "AI4Code"


@mends(MOLECULES, "empty-cells-read-as-nan")
def test_an_empty_cell_is_the_empty_text_and_not_the_word_nan(tmp_path: Path) -> None:
    truth = pd.DataFrame({"image_id": ["a", "b"], "InChI": ["nan", "InChI"]})
    # the word nan is 0 and 4 changes away, one letter being in common; the empty text 3 and 5
    assert scores_against(truth, truth.assign(InChI=""), MOLECULES, tmp_path) == [2.0, 4.0]


@mends(MOLECULES, "empty-cells-read-as-nan")
def test_empty_cells_cost_the_length_of_what_they_should_be(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        MOLECULES, lambda edition: answers(MOLECULES, edition).assign(InChI=""), tmp_path
    )
    assert corrected.score == pytest.approx(answers(MOLECULES, "corrected")["InChI"].str.len().mean())
    assert v1.score is not None
    assert corrected.score is not None
    assert v1.score < corrected.score


@mends(MOLECULES, "empty-cells-read-as-nan")
def test_words_that_stand_for_missing_cells_are_texts(tmp_path: Path) -> None:
    truth = pd.DataFrame({"image_id": ["a", "b"], "InChI": ["None1", "None2"]})
    told = pd.DataFrame({"image_id": ["b", "a"], "InChI": ["None", "None"]})
    assert scores_against(truth, told, MOLECULES, tmp_path) == [4.0, 1.0]


@mends(NOTEBOOKS, "exactly-20000-demanded")
def test_notebooks_may_be_fewer_than_planned(tmp_path: Path) -> None:
    raw = Vector(VECTORS / NOTEBOOKS).unpack_raw(tmp_path / "raw")
    with pytest.raises(DataProblem, match="expected 20000"):
        prepare_competition(NOTEBOOKS, data_dir=tmp_path / "data", raw=raw)
    folder = prepare_competition(NOTEBOOKS, data_dir=tmp_path / "data", raw=raw, edition="corrected")
    train, test = (len(list((folder / "public" / part).iterdir())) for part in ("train", "test"))
    assert 0 < test <= 0.15 * (train + test) + 1
    perfect = folder / registry.get(NOTEBOOKS).answers
    assert judge(GradeRequest(NOTEBOOKS, perfect, folder, "corrected")).score == 1


def test_notebooks_without_an_order_are_not_scored(tmp_path: Path) -> None:
    cells = pd.DataFrame({"id": ["a", "b"], "cell_order": ["x", "y"]})
    for judgement in judged_against(cells, cells, NOTEBOOKS, tmp_path):
        assert judgement.outcome == "rejected"
        assert "no order to compare" in judgement.message
