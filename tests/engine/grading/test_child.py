"""A grading that dies or takes too much costs its own score, and its parent knows why."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import grade_submission
from engine.grading.child import ChildLimits, GradeRequest, grade_in_child
from foundation.problems import DataProblem, UsageProblem
from tests.competitions.prepared import prepared

ID = "spaceship-titanic"


@pytest.fixture
def data_dir() -> str:
    return str(prepared(ID).parent.parent)


@pytest.fixture
def gold() -> str:
    return str(prepared(ID) / "private" / "test.csv")


def test_a_child_says_what_this_process_would_say(data_dir: str, gold: str) -> None:
    here = grade_submission(gold, ID, data_dir=data_dir)
    there = grade_in_child(GradeRequest(gold, ID, data_dir))
    assert there.to_dict(extended=True) | {"created_at": here.created_at} == here.to_dict(extended=True)


def test_parameters_and_answers_reach_the_child(gold: str, tmp_path: Path) -> None:
    request = GradeRequest(gold, ID, str(tmp_path), parameters={"seed": 1}, answers=gold)
    assert grade_in_child(request).score == 1.0


@pytest.mark.parametrize(
    "limits",
    [
        ChildLimits(wall_seconds=0.01),
        ChildLimits(memory_bytes=1 << 20),
        ChildLimits(cpu_seconds=0),
    ],
    ids=["wall", "memory", "cpu"],
)
def test_a_child_over_its_limits_costs_only_its_score(data_dir: str, gold: str, limits: ChildLimits) -> None:
    report = grade_in_child(GradeRequest(gold, ID, data_dir, limits=limits))
    assert report.outcome == "limits_exceeded", report.detail
    assert report.score is None and report.submission_exists and report.message


def test_problems_of_the_operator_come_back_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="is not prepared"):
        grade_in_child(GradeRequest(None, ID, str(tmp_path)))
    with pytest.raises(UsageProblem, match="not known"):
        grade_in_child(GradeRequest(None, "titanic", str(tmp_path)))


def test_an_agents_link_is_not_followed(data_dir: str, gold: str, tmp_path: Path) -> None:
    link = tmp_path / "submission.csv"
    link.symlink_to(gold)
    assert grade_in_child(GradeRequest(str(link), ID, data_dir)).outcome == "no_file"
    followed = GradeRequest(str(link), ID, data_dir, follow_links=True)
    assert grade_in_child(followed).score == 1.0


def test_modules_in_the_working_directory_are_not_imported(
    data_dir: str, gold: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pandas.py").write_text("import os; os._exit(7)")
    monkeypatch.chdir(tmp_path)
    assert grade_in_child(GradeRequest(gold, ID, data_dir)).score == 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["pandas.py"]
