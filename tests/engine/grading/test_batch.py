"""A JSONL of submissions is graded side by side, each with its own outcome, and becomes MLE-bench's report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlebench_console import grade_submission
from mlebench_console.engine.grading.batch import (
    REPORT_SUFFIX,
    batch_document,
    grade_many,
    write_batch_report,
)
from mlebench_console.engine.grading.report import Report
from mlebench_console.engine.rungroups import SubmissionLine, read_submissions
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from tests.competitions.prepared import prepared

ID = "spaceship-titanic"
UNPREPARED = "leaf-classification"


def test_comments_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(
        '# two runs\n\n  // and no more\n{"competition_id": "a", "submission_path": null}\n'
        '{"competition_id": "b", "submission_path": "s.csv", "logs_path": "l", "code_path": null}\n'
    )
    assert read_submissions(path) == [
        SubmissionLine("a", None),
        SubmissionLine("b", "s.csv", "l", None),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not a submission"),
        ("[]", "line 2 .* got `array`"),
        ('{"submission_path": "x"}', "line 2 .* missing required field `competition_id`"),
        ('{"competition_id": "a", "submission_path": 5}', r"line 2 .* got `int` - at `\$.submission_path`"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"competition_id": "a"}}\n{line}\n')
    with pytest.raises(DataProblem, match=message):
        read_submissions(path)


def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="can't be read"):
        read_submissions(tmp_path / "no.jsonl")


def test_the_report_counts_and_is_named_as_mle_bench_does(tmp_path: Path) -> None:
    folder = prepared(ID)
    paths = [str(folder / "private" / "test.csv"), None, str(folder / "public" / "sample_submission.csv")]

    reports = [grade_submission(path, ID, data_dir=folder.parent.parent) for path in paths]
    path = write_batch_report(reports, tmp_path / "out", 1_700_000_000)
    assert path.name == "2023-11-14T22-13-20-GMT_grading_report.json"
    values = json.loads(path.read_text())
    assert list(values) == [
        "total_runs",
        "total_runs_with_submissions",
        "total_valid_submissions",
        "total_medals",
        "total_gold_medals",
        "total_silver_medals",
        "total_bronze_medals",
        "total_above_median",
        "competition_reports",
    ]
    assert [values[key] for key in list(values)[:8]] == [3, 2, 2, 1, 1, 0, 0, 1]
    assert len(values["competition_reports"]) == 3


def test_no_lines_make_an_empty_report() -> None:
    assert batch_document(())["total_runs"] == 0


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
    told: list[tuple[int, Report]] = []

    def tell(done: int, report: Report) -> None:
        told.append((done, report))

    reports = grade_many(lines, data_dir=folder.parent.parent, at_once=2, on_graded=tell)
    assert [report.outcome for report in reports] == [
        "not_prepared",
        "scored",
        "no_file",
        "not_csv",
        "rejected",
    ]
    assert [report.submission_exists for report in reports] == [True, True, False, True, True]
    assert all(report.message for report in reports)
    assert [done for done, _report in told] == [1, 2, 3, 4, 5]
    assert {report for _done, report in told} == set(reports)


def test_an_unknown_competition_is_refused_before_any_work() -> None:
    told: list[int] = []
    with pytest.raises(UsageProblem, match="not known"):
        grade_many(
            [SubmissionLine(ID, None), SubmissionLine("titanic", None)],
            on_graded=lambda done, _report: told.append(done),
        )
    assert told == []


def test_our_own_fields_stand_behind_mle_benchs_and_tell_no_traceback(tmp_path: Path) -> None:
    reports = grade_many([SubmissionLine(ID, None)], data_dir=prepared(ID).parent.parent)
    (report,) = json.loads(write_batch_report(reports, tmp_path, 0.0).read_text())["competition_reports"]
    ours = ["edition", "outcome", "message", "defects", "descriptions", "percentile"]
    assert list(report)[-7:] == ["submission_path", *ours]


def test_a_report_never_replaces_an_older_one(tmp_path: Path) -> None:
    first = write_batch_report((), tmp_path, 0.0)
    second = write_batch_report((), tmp_path, 0.0)
    assert first.name == f"1970-01-01T00-00-00-GMT{REPORT_SUFFIX}"
    assert second.name == f"1970-01-01T00-00-01-GMT{REPORT_SUFFIX}"


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataProblem, match="can't be written to"):
        write_batch_report((), tmp_path / "file", 0.0)
