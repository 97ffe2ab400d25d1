"""Many submissions are graded side by side, each with its own outcome, and every line is told of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.grading.batch import REPORT_SUFFIX, BatchReport, write_batch_report
from engine.grading.many import Graded, grade_many
from engine.rungroups import SubmissionLine
from foundation.problems import DataProblem, UsageProblem
from tests.competitions.prepared import prepared

ID = "spaceship-titanic"
UNPREPARED = "leaf-classification"


def test_every_kind_of_ending_is_told_apart_and_stops_no_other(tmp_path: Path) -> None:
    folder = prepared(ID)
    (tmp_path / "ragged.csv").write_bytes(b"a,b\n1,2,3\n4\n5,6,7,8\n")
    (tmp_path / "wrong.csv").write_bytes(b"PassengerId\n1\n")
    lines = [
        SubmissionLine(UNPREPARED, str(tmp_path / "wrong.csv")),
        SubmissionLine(ID, str(folder / "private" / "test.csv")),
        SubmissionLine(ID, None),
        SubmissionLine(ID, str(tmp_path / "ragged.csv")),
        SubmissionLine(ID, str(tmp_path / "wrong.csv")),
    ]
    told: list[Graded] = []
    batch = grade_many(lines, data_dir=folder.parent.parent, at_once=2, on_graded=told.append)
    assert [report.outcome for report in batch.reports] == [
        "not_prepared",
        "scored",
        "no_file",
        "not_csv",
        "rejected",
    ]
    assert [report.submission_exists for report in batch.reports] == [True, True, False, True, True]
    assert all(report.message for report in batch.reports)
    assert [graded.done for graded in told] == [1, 2, 3, 4, 5]
    assert {graded.line for graded in told} == set(lines)


def test_an_unknown_competition_is_refused_before_any_work() -> None:
    told: list[Graded] = []
    with pytest.raises(UsageProblem, match="not known"):
        grade_many([SubmissionLine(ID, None), SubmissionLine("titanic", None)], on_graded=told.append)
    assert told == []


def test_our_own_fields_stand_behind_mle_benchs_and_tell_no_traceback(tmp_path: Path) -> None:
    batch = grade_many([SubmissionLine(ID, None)], data_dir=prepared(ID).parent.parent)
    (report,) = json.loads(write_batch_report(batch, tmp_path, 0.0).read_text())["competition_reports"]
    ours = ["edition", "outcome", "message", "defects", "descriptions"]
    assert list(report)[-6:] == ["submission_path", *ours]


def test_a_report_never_replaces_an_older_one(tmp_path: Path) -> None:
    first = write_batch_report(BatchReport(()), tmp_path, 0.0)
    second = write_batch_report(BatchReport(()), tmp_path, 0.0)
    assert first.name == f"1970-01-01T00-00-00-UTC{REPORT_SUFFIX}"
    assert second.name == f"1970-01-01T00-00-01-UTC{REPORT_SUFFIX}"


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataProblem, match="can't be written to"):
        write_batch_report(BatchReport(()), tmp_path / "file", 0.0)
