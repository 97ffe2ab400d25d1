"""Every submission gets a score or a reason; a grader that fails takes nobody down and tells nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from mlebench_console.competitions import judging, registry
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.submissions import SizeLimits, SubmissionFile
from mlebench_console.competitions.task import Grading, InvalidSubmission
from mlebench_console.foundation.problems import UsageProblem
from tests.competitions.prepared import prepared

SPACESHIP = registry.get("spaceship-titanic")


def judge_with(monkeypatch: pytest.MonkeyPatch, grade: Any, **options: Any) -> judging.Judgement:
    monkeypatch.setattr(judging, "load_task", lambda competition: SimpleNamespace(grade=grade))
    folder = prepared("spaceship-titanic")
    return judge(GradeRequest(SPACESHIP.id, folder / "public" / "sample_submission.csv", folder, **options))


def test_a_failing_grader_is_told_apart_and_keeps_its_text_from_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def grade(case: Grading) -> float:
        raise ValueError("the answer is 42")

    found = judge_with(monkeypatch, grade)
    assert (found.outcome, found.score) == ("grader_error", None)
    assert "42" not in found.message
    assert "the answer is 42" in found.detail


def test_a_refusal_carries_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def grade(case: Grading) -> float:
        raise InvalidSubmission("Row 3 is odd.")

    found = judge_with(monkeypatch, grade)
    assert (found.outcome, found.score) == ("rejected", None)
    assert found.message == "Row 3 is odd. Rows are counted from 1, without the header."


def test_memory_that_runs_out_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def grade(case: Grading) -> float:
        raise MemoryError

    assert judge_with(monkeypatch, grade).outcome == "limits_exceeded"


def test_nan_is_a_score_in_v1_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge_with(monkeypatch, lambda case: float("nan")).outcome == "scored"
    folder = prepared("spaceship-titanic", "corrected")
    found = judge(
        GradeRequest(SPACESHIP.id, folder / "public" / "sample_submission.csv", folder, "corrected")
    )
    assert found.outcome == "rejected"


def test_no_file_is_told_apart() -> None:
    found = judge(GradeRequest(SPACESHIP.id, None, prepared("spaceship-titanic")))
    assert (found.outcome, found.score) == ("no_file", None)


def test_a_file_that_is_no_table_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_bytes(b"a\x00")
    found = judge(GradeRequest(SPACESHIP.id, tmp_path / "s.csv", prepared("spaceship-titanic")))
    assert (found.outcome, found.score) == ("not_csv", None)


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_called_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.csv").write_bytes(content)
    found = judge(GradeRequest(SPACESHIP.id, tmp_path / "s.csv", prepared("spaceship-titanic")))
    assert (found.outcome, found.message) == ("rejected", "The file is empty: it has no header and no rows.")


def test_a_file_that_is_too_large_says_how_large_it_is(tmp_path: Path) -> None:
    with (tmp_path / "s.csv").open("wb") as stream:
        stream.truncate(1 << 30)
    found = judge(GradeRequest(SPACESHIP.id, tmp_path / "s.csv", prepared("spaceship-titanic")))
    assert (found.outcome, found.score) == ("too_large", None)
    assert found.message.startswith("The file is too large: it has 1,073,741,824 bytes, at most ")


def test_an_unknown_parameter_is_a_mistake_of_the_asker() -> None:
    with pytest.raises(UsageProblem, match="no parameter size\nIt has: test_size, seed"):
        judge(GradeRequest(SPACESHIP.id, None, Path(), parameters={"size": 1}))


def test_a_parameter_that_must_be_a_number_is_told() -> None:
    case = Grading(
        SPACESHIP,
        "v1",
        {"test_size": None},
        submission=pd.DataFrame(),
        answers_path=Path(),
        private=Path(),
        source=SubmissionFile(None, SizeLimits(bytes=0, lines=0, columns=0)),
    )
    with pytest.raises(UsageProblem, match="must be a number"):
        case.number("test_size")
