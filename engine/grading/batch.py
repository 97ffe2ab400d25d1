"""The JSONL of many submissions and the report on them, in MLE-bench's format; grading each is `child`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.grading.report import Report
from foundation.clock import run_group_stamp
from foundation.files import write_json
from foundation.problems import DataProblem

REPORT_SUFFIX = "_grading_report.json"


@dataclass(frozen=True)
class SubmissionLine:
    """One line of a submission JSONL."""

    competition_id: str
    submission_path: str | None
    logs_path: str | None = None
    code_path: str | None = None


def read_submissions(path: Path) -> list[SubmissionLine]:
    """Read a submission JSONL; blank lines and comments (`#`, `//`) are skipped.

    Raises:
        DataProblem: the file cannot be read, or a line is not as it should be, by its number.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataProblem(f"{path} cannot be read", str(error)) from error
    return [
        _read_line(line, f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith(("#", "//"))
    ]


def _read_line(line: str, where: str) -> SubmissionLine:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise DataProblem(f"{where} is not JSON", str(error)) from error
    if not isinstance(values, dict) or not isinstance(values.get("competition_id"), str):
        raise DataProblem(f"{where} names no competition", next_step='It needs a key "competition_id".')
    paths = [values.get(key) for key in ("submission_path", "logs_path", "code_path")]
    if not all(value is None or isinstance(value, str) for value in paths):
        raise DataProblem(f"{where} is not as it should be", "a path is neither text nor null")
    return SubmissionLine(values["competition_id"], *paths)


@dataclass(frozen=True)
class BatchReport:
    """The reports of many submissions and their counts."""

    reports: tuple[Report, ...]

    def to_dict(self) -> dict[str, Any]:
        """The counts and the reports as MLE-bench writes them, our own fields behind its own in each report."""
        reports = self.reports
        return {
            "total_runs": len(reports),
            "total_runs_with_submissions": sum(report.submission_exists for report in reports),
            "total_valid_submissions": sum(report.valid_submission for report in reports),
            "total_medals": sum(report.any_medal for report in reports),
            "total_gold_medals": sum(report.gold_medal for report in reports),
            "total_silver_medals": sum(report.silver_medal for report in reports),
            "total_bronze_medals": sum(report.bronze_medal for report in reports),
            "total_above_median": sum(report.above_median for report in reports),
            "competition_reports": [report.to_told_dict() for report in reports],
        }


def write_batch_report(report: BatchReport, output_dir: Path, moment: float) -> Path:
    """Write the report under MLE-bench's name for it and return its path; an older one is never replaced.

    Raises:
        DataProblem: the folder can't be written to.
    """
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        while (path := output_dir / f"{run_group_stamp(moment)}{REPORT_SUFFIX}").exists():
            moment += 1
        write_json(path, report.to_dict())
    except OSError as error:
        raise DataProblem(
            f"the report can't be written to {output_dir}", error.strerror or str(error)
        ) from error
    return path
