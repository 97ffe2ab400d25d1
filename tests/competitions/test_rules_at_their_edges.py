"""Edition v1 keeps MLE-bench's rules where they hardly ever matter: values on a threshold, numbers that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from tests.competitions.prepared import prepared


def graded(competition_id: str, answers: list[str], submission: list[str], folder: Path) -> Judgement:
    """What edition v1 says to a submission against answers of its own, both as lines."""
    paths = folder / "answers.csv", folder / "submission.csv"
    for path, lines in zip(paths, (answers, submission), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    return judge(GradeRequest(competition_id, paths[1], prepared(competition_id), answers=paths[0]))


# Image a takes the ids 0, for which MLE-bench knows no hit; the score is half of what b's finding gets.
TRUE_BOXES = [
    "image_id,class_id,class_name,rad_id,x_min,y_min,x_max,y_max",
    "a,14,No finding,R1,0.0,0.0,1.0,1.0",
    "b,3,Cardiomegaly,R1,{}",
]


@pytest.mark.parametrize(
    ("true", "told", "score"),
    [
        ("12.2,3.3,12.6,4.5", "16.1 0.6 8.4 9.0", 0.0),  # 0.3999999999999999
        ("0.0,0.0,10.0,4.0", "0.0 0.0 10.0 10.0", 0.5),  # 0.4
        ("5.0,5.0,10.0,14.0", "nan nan nan nan", 0.5),
        ("5.0,5.0,10.0,14.0", "5.0 5.0 inf 14.0", 0.0),
    ],
)
def test_boxes_overlap_by_what_coco_computes(true: str, told: str, score: float, tmp_path: Path) -> None:
    found = graded(
        "vinbigdata-chest-xray-abnormalities-detection",
        [*TRUE_BOXES[:2], TRUE_BOXES[2].format(true)],
        ["image_id,PredictionString", "a,14 1 0 0 1 1", f"b,3 1 {told}"],
        tmp_path,
    )
    assert found.score == pytest.approx(score)
