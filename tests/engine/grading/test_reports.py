"""Reports have MLE-bench's fields, order and rounding, and tell apart what it lumps together."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from mlebench_console import grade_submission, validate_submission
from mlebench_console.competitions.grader import grade
from mlebench_console.competitions.judging import Judgement
from mlebench_console.competitions.registry import get
from mlebench_console.engine.grading.grader import request_for
from mlebench_console.engine.grading.report import Report, make_report
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.prepared import prepared
from tests.report_fields import REPORT_FIELDS

ID = "spaceship-titanic"


@pytest.fixture
def data_dir() -> Path:
    return prepared(ID).parent.parent


@pytest.fixture
def gold(data_dir: Path) -> Path:
    return data_dir / ID / "prepared" / "private" / "test.csv"


def test_the_fields_stand_in_mle_benchs_order(data_dir: Path, gold: Path) -> None:
    report = grade_submission(gold, ID, data_dir=data_dir)
    values = report.to_dict()
    assert list(values) == REPORT_FIELDS
    assert json.loads(json.dumps(values)) == values
    assert values["score"] == 1.0 and values["gold_medal"] and values["any_medal"]
    assert not values["silver_medal"] and not values["bronze_medal"]
    assert values["above_median"] and values["valid_submission"] and values["submission_exists"]
    assert values["submission_path"] == str(gold)
    assert datetime.fromisoformat(values["created_at"]).tzinfo is not None


def test_a_report_survives_its_own_json(data_dir: Path, gold: Path) -> None:
    report = grade_submission(gold, ID, data_dir=data_dir)
    values = report.to_dict(extended=True)
    assert json.loads(json.dumps(values)) == values
    assert Report(**values | {"defects": report.defects}) == report


def test_scores_have_five_decimals_and_medals_go_by_them() -> None:
    competition = get("leaf-classification")  # gold at 0.0, lower is better
    report = make_report(competition, Judgement.scored(4.9e-6, "valid"), Path("s.csv"), "v1", "now")
    assert report.score == 0.0
    assert report.gold_medal


@pytest.mark.parametrize(
    ("name", "content", "outcome", "exists"),
    [
        ("none.csv", None, "no_file", False),
        ("s.txt", b"a\n", "no_file", False),
        ("s.csv", b"a,b\n1,2,3\n4\n5,6,7,8\n", "not_csv", True),
        ("s.csv", b"", "rejected", True),
        ("s.CSV", b"PassengerId\n1\n", "rejected", True),
    ],
)
def test_reasons_are_told_apart(
    data_dir: Path, tmp_path: Path, name: str, content: bytes | None, outcome: str, exists: bool
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    report = grade_submission(path, ID, data_dir=data_dir)
    assert (report.outcome, report.submission_exists) == (outcome, exists)
    assert report.score is None and not report.valid_submission and report.message
    assert not any((report.any_medal, report.above_median, report.medal))
    verdict = validate_submission(path, ID, data_dir=data_dir)
    assert (verdict.valid, verdict.score, verdict.medal_tier) == (False, None, None)
    assert verdict.message == report.message


def test_a_run_without_submission_has_a_report(data_dir: Path) -> None:
    report = grade_submission(None, ID, data_dir=data_dir)
    assert not report.submission_exists
    assert report.to_dict()["submission_path"] == "None"


def test_a_verdict_names_the_medal(data_dir: Path, gold: Path) -> None:
    verdict = validate_submission(str(gold), ID, data_dir=str(data_dir))
    assert (verdict.valid, verdict.score, verdict.medal_tier) == (True, 1.0, "gold")


def test_a_check_of_the_form_needs_no_answers(data_dir: Path, gold: Path, tmp_path: Path) -> None:
    public = tmp_path / ID / "prepared" / "public"
    public.parent.mkdir(parents=True)
    public.symlink_to(data_dir / ID / "prepared" / "public")
    request = request_for(str(gold), ID, data_dir=str(tmp_path), follow_links=True, form_only=True)
    found = grade(request)
    assert (found.outcome, found.message) == ("scored", "The submission is valid.")


def test_reports_carry_edition_and_the_defects_that_touch_them(data_dir: Path, gold: Path) -> None:
    v1 = grade_submission(gold, ID, data_dir=data_dir)
    assert v1.edition == "v1" and any("travel group" in defect for defect in v1.defects)
    corrected = prepared(ID, "corrected")
    report = grade_submission(
        corrected / "private" / "test.csv", ID, data_dir=corrected.parent.parent, edition="corrected"
    )
    assert (report.edition, report.defects, report.score) == ("corrected", (), 1.0)


def test_other_answers_can_be_given(tmp_path: Path) -> None:
    for name, labels in (("a", "True,True"), ("s", "True,False")):
        rows = [f"{number},{label}" for number, label in enumerate(labels.split(","))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["PassengerId,Transported", *rows]) + "\n")
    answers = tmp_path / "a.csv"
    report = grade_submission(tmp_path / "s.csv", ID, data_dir=tmp_path / "empty", answers=answers)
    assert report.score == 0.5
    with pytest.raises(DataProblem, match="was not found"):
        grade_submission(tmp_path / "s.csv", ID, answers=tmp_path / "no.csv")


def test_an_unprepared_dataset_is_the_operators_problem(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match=f"is not prepared.*\nPrepare it: .* -c {ID}"):
        grade_submission(None, ID, data_dir=tmp_path)
