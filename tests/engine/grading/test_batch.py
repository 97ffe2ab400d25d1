"""A JSONL of submissions is read as MLE-bench reads it and becomes its grading report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import grade_submission
from engine.grading.batch import BatchReport, write_batch_report
from engine.rungroups import SubmissionLine, read_submissions
from foundation.problems import DataProblem
from tests.competitions.prepared import prepared

ID = "spaceship-titanic"


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
        ("{", r"line 2 is not JSON"),
        ("[]", "line 2 names no competition"),
        ('{"submission_path": "x"}', "line 2 names no competition"),
        ('{"competition_id": "a", "submission_path": 5}', "line 2 is not valid"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"competition_id": "a"}}\n{line}\n')
    with pytest.raises(DataProblem, match=message):
        read_submissions(path)


def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="cannot be read"):
        read_submissions(tmp_path / "no.jsonl")


def test_the_report_counts_and_is_named_as_mle_bench_does(tmp_path: Path) -> None:
    folder = prepared(ID)
    paths = [str(folder / "private" / "test.csv"), None, str(folder / "public" / "sample_submission.csv")]

    report = BatchReport(tuple(grade_submission(path, ID, data_dir=folder.parent.parent) for path in paths))
    path = write_batch_report(report, tmp_path / "out", 1_700_000_000)
    assert path.name == "2023-11-14T22-13-20-UTC_grading_report.json"
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
    assert BatchReport(()).to_dict()["total_runs"] == 0
