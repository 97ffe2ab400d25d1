"""MLE-bench's grading of submissions, done by mlebench-console's graders in processes with limits."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench.data import is_dataset_prepared
from mlebench.grade_helpers import CompetitionReport
from mlebench.registry import Competition, Registry
from mlebench.registry import registry as DEFAULT_REGISTRY  # noqa: N812  # MLE-bench's name
from mlebench.utils import get_logger, purple

if TYPE_CHECKING:
    from mlebench_console.engine.grading.report import Report

logger = get_logger(__name__)


def grade_csv(path_to_submission: Path, competition: Competition) -> CompetitionReport:
    """Grade one submission and return the report, also for an invalid or missing one.

    Raises:
        ValueError: the dataset is not prepared.
    """
    from mlebench_console import grade_submission

    _require_prepared(competition)
    report = grade_submission(path_to_submission, competition.id, data_dir=_data_dir(competition))
    if not report.submission_exists:
        logger.warning(
            f"Invalid submission file: {path_to_submission}. Please check that the file exists and it is a CSV."
        )
    elif report.score is None:
        logger.warning(f"Invalid submission: {report.message}")
    return _as_theirs(report)


def grade_jsonl(path_to_submissions: Path, output_dir: Path, registry: Registry = DEFAULT_REGISTRY) -> None:
    """Grade the submissions that a JSONL file lists, and write the report on them.

    Raises:
        ValueError: a dataset is not prepared.
        Problem: the list can't be read, or the report not be written.
    """
    from mlebench_console.engine.grading.batch import counts_of, grade_many, write_batch_report
    from mlebench_console.engine.rungroups import read_submissions

    lines = read_submissions(path_to_submissions)
    for competition_id in dict.fromkeys(line.competition_id for line in lines):
        _require_prepared(registry.get_competition(competition_id))
    reports = grade_many(lines, data_dir=registry.get_data_dir())
    logger.info(json.dumps(counts_of(reports), indent=4))
    output_dir.mkdir(exist_ok=True)  # not those above it, as in MLE-bench
    path = write_batch_report(reports, output_dir, time.time())
    logger.info(purple(f"Saved summary report to {path}"))


def validate_submission(submission: Path, competition: Competition) -> tuple[bool, str]:
    """Return whether a submission has the right form, checked against public data only, and the message.

    Raises:
        ValueError: the dataset is not prepared.
    """
    from mlebench_console.competitions import grader
    from mlebench_console.engine.grading.grader import request_for

    if not submission.is_file():
        return False, f"Submission invalid! Submission file {submission} does not exist."
    if submission.suffix.lower() != ".csv":
        return False, "Submission invalid! Submission file must be a CSV file."
    _require_prepared(competition)
    data_dir = _data_dir(competition)
    request = request_for(submission, competition.id, data_dir=data_dir, follow_links=True, form_only=True)
    found = grader.grade(request)
    if found.outcome == "scored":
        return True, "Submission is valid."
    why = "The attempt to grade the submission has resulted in the following error message"
    return False, f"Submission invalid! {why}:\n{found.message}"


def aggregate_reports(competition_reports: list[CompetitionReport]) -> dict[str, Any]:
    """Return the summary of reports, including the reports."""
    reports = [report.to_dict() for report in competition_reports]
    medals = {
        kind: sum(report[f"{kind}_medal"] for report in reports) for kind in ("gold", "silver", "bronze")
    }
    return {
        "total_runs": len(reports),
        "total_runs_with_submissions": sum(report["submission_exists"] for report in reports),
        "total_valid_submissions": sum(report["valid_submission"] for report in reports),
        "total_medals": sum(medals.values()),
        **{f"total_{kind}_medals": count for kind, count in medals.items()},
        "total_above_median": sum(report["above_median"] for report in reports),
        "competition_reports": reports,
    }


def _data_dir(competition: Competition) -> Path:
    return competition.raw_dir.parent.parent


def _require_prepared(competition: Competition) -> None:
    if not is_dataset_prepared(competition, grading_only=True):
        raise ValueError(
            f"Dataset for competition `{competition.id}` is not prepared! "
            f"Please run `mlebench prepare -c {competition.id}` to prepare the dataset."
        )


def _as_theirs(report: Report) -> CompetitionReport:
    values = {field.name: getattr(report, field.name) for field in fields(CompetitionReport)}
    return CompetitionReport(**(values | {"created_at": datetime.fromisoformat(report.created_at)}))
