"""Mended defects of drawn molecules, whose cells are texts, and of notebooks, whose number was fixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.mended.editions import answers, grade_in_both, mends
from tests.conformance.trees import VECTORS, Vector

MOLECULES = "bms-molecular-translation"
NOTEBOOKS = "AI4Code"


@mends(MOLECULES, "empty-cells-read-as-nan")
def test_empty_cells_cost_the_length_of_what_they_should_be(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        MOLECULES, lambda edition: answers(MOLECULES, edition).assign(InChI=""), tmp_path
    )
    assert corrected.score == pytest.approx(answers(MOLECULES, "corrected")["InChI"].str.len().mean())
    assert v1.score is not None
    assert corrected.score is not None
    assert v1.score < corrected.score


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
