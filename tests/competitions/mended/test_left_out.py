"""What edition corrected leaves out, because no split of its data could mend it: v1 works, corrected says why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.model import Edition
from mlebench_console.foundation.problems import UsageProblem
from tests.competitions.mended.editions import answers, grade_in, mends, sample, with_cell
from tests.competitions.prepared import prepared

TOXIC = "jigsaw-toxic-comment-classification-challenge"
BIAS = "jigsaw-unintended-bias-in-toxicity-classification"
LEFT_OUT = [each for each in map(registry.get, registry.all_ids()) if each.excluded]

Submission = Callable[[Edition], pd.DataFrame]


def grading_refused(competition_id: str, submission: Path) -> str:
    """Why edition corrected does not grade."""
    with pytest.raises(UsageProblem, match="not part of edition corrected") as caught:
        judge(GradeRequest(competition_id, submission, prepared(competition_id), "corrected"))
    return str(caught.value)


@pytest.mark.parametrize("competition_id", [each.id for each in LEFT_OUT])
def test_what_no_split_can_mend_is_left_out_with_the_reason(competition_id: str, tmp_path: Path) -> None:
    competition = registry.get(competition_id)
    assert grade_in(competition_id, "v1", sample(competition_id, "v1"), tmp_path).outcome == "scored"
    with pytest.raises(UsageProblem, match="not part of edition corrected") as preparing:
        prepared(competition_id, "corrected")
    for refusal in (str(preparing.value), grading_refused(competition_id, tmp_path / "v1.csv")):
        assert competition.excluded and competition.excluded in refusal


def test_nothing_else_is_left_unmended() -> None:
    unmended = {
        each.id
        for each in map(registry.get, registry.all_ids())
        if any(defect.treatment == "open" for defect in each.defects)
    }
    assert unmended == {each.id for each in LEFT_OUT}


def sample_with(change: Callable[[pd.DataFrame], pd.DataFrame], competition_id: str) -> Submission:
    """The sample submission after a change."""
    return lambda edition: change(sample(competition_id, edition))


def inverted(submission: pd.DataFrame) -> pd.DataFrame:
    """Every comment told wrongly."""
    return submission.assign(prediction=1 - (answers(BIAS, "v1")["toxicity"] >= 0.5))


EXTRA = [
    (lambda table: table.assign(note="x"), "Column 'note' is not expected"),
    (lambda table: table.reset_index(names="Unnamed: 0"), "Column 1 has no name and is not expected"),
]
WRONG = [
    (sample_with(lambda table: table[1:], TOXIC), "The submission has 69 rows, expected 70"),
    (with_cell(TOXIC, "id", "f" * 16, row=2), "Row 3: id 'ffffffffffffffff' is not among the ids"),
    (with_cell(TOXIC, "threat", None, row=4), "Row 5: threat is empty"),
    (with_cell(TOXIC, "threat", "high", row=4), "Row 5: threat 'high' is not a number"),
]
UNUSUAL = [
    (lambda table: table[1:], "The submission has 259 rows, expected 260"),
    (lambda table: table.assign(prediction="high"), "Row 1: prediction 'high' is not a number"),
    (lambda table: table.assign(toxicity=0.5), "There must be a column 'prediction', and none"),
    (inverted, "The metric is not defined for these predictions"),
]


@pytest.mark.parametrize(
    ("competition_id", "make", "message"),
    [
        *(
            pytest.param(
                TOXIC, sample_with(change, TOXIC), message, marks=mends(TOXIC, "extra-columns-crash")
            )
            for change, message in EXTRA
        ),
        *(
            pytest.param(TOXIC, make, message, marks=mends(TOXIC, "wrong-rows-and-cells-crash"))
            for make, message in WRONG
        ),
        *(
            pytest.param(
                BIAS, sample_with(change, BIAS), message, marks=mends(BIAS, "unusual-submissions-crash")
            )
            for change, message in UNUSUAL
        ),
    ],
)
def test_what_made_a_grader_fail_is_refused_in_v1_and_not_graded_in_corrected(
    competition_id: str, make: Submission, message: str, tmp_path: Path
) -> None:
    judgement = grade_in(competition_id, "v1", make("v1"), tmp_path)
    assert judgement.outcome == "rejected"
    assert judgement.message.startswith(message)
    grading_refused(competition_id, tmp_path / "v1.csv")
