"""The report on many submissions, in MLE-bench's format; grading each is `child`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.grading.report import Report
from foundation.clock import run_group_stamp
from foundation.files import write_json
from foundation.problems import DataProblem

REPORT_SUFFIX = "_grading_report.json"


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
