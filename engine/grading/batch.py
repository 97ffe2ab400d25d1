"""Grade many submissions in parallel, and write the report on them in MLE-bench's format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.grader import PER_PROCESS, Grader
from mlebench_console.competitions.judging import GradeRequest, Judgement
from mlebench_console.competitions.model import Edition
from mlebench_console.engine.grading.grader import report_on, request_for
from mlebench_console.engine.grading.report import Report, ReportOutcome, make_report
from mlebench_console.engine.rungroups import SubmissionLine
from mlebench_console.foundation.clock import run_group_stamp
from mlebench_console.foundation.files import write_json
from mlebench_console.foundation.problems import DataProblem, Problem

REPORT_SUFFIX = "_grading_report.json"


def counts_of(reports: Sequence[Report]) -> dict[str, int]:
    """Count reports as MLE-bench does."""
    return {
        "total_runs": len(reports),
        "total_runs_with_submissions": sum(report.submission_exists for report in reports),
        "total_valid_submissions": sum(report.valid_submission for report in reports),
        "total_medals": sum(report.any_medal for report in reports),
        "total_gold_medals": sum(report.gold_medal for report in reports),
        "total_silver_medals": sum(report.silver_medal for report in reports),
        "total_bronze_medals": sum(report.bronze_medal for report in reports),
        "total_above_median": sum(report.above_median for report in reports),
    }


def batch_document(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the report on many submissions as MLE-bench writes it, our own fields after its own in each report."""
    return {**counts_of(reports), "competition_reports": [report.to_public_dict() for report in reports]}


def write_batch_report(reports: Sequence[Report], output_dir: Path, moment: float) -> Path:
    """Write the report under MLE-bench's name for it and return its path; an older one is never replaced.

    Raises:
        DataProblem: the folder can't be written to.
    """
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        while (path := output_dir / f"{run_group_stamp(moment)}{REPORT_SUFFIX}").exists():
            moment += 1
        write_json(path, batch_document(reports))
    except OSError as error:
        raise DataProblem(
            f"the report can't be written to {output_dir}", error.strerror or str(error)
        ) from error
    return path


def grade_many(
    lines: Sequence[SubmissionLine],
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    at_once: int | None = None,
    on_graded: Callable[[int, Report], object] = lambda _done, _report: None,
) -> tuple[Report, ...]:
    """Grade submissions in parallel; the reports are in the order of the lines.

    Args:
        lines: what to grade; a line that can't be graded does not stop the others.
        data_dir: the data directory.
        edition: of the graders and the prepared data.
        at_once: how many are graded at once; by default the number of processors.
        on_graded: called with each report, and how many there are by then.

    Raises:
        UsageProblem: a line has an unknown competition; nothing is graded then.
    """
    for line in lines:
        registry.get(line.competition_id)
    reports: dict[int, Report] = {}

    def keep(place: int, report: Report) -> None:
        reports[place] = report
        on_graded(len(reports), report)

    requests: dict[int, GradeRequest] = {}
    for place, line in enumerate(lines):
        try:
            requests[place] = request_for(
                line.submission_path,
                line.competition_id,
                data_dir=data_dir,
                edition=edition,
                follow_links=True,
            )
        except Problem as problem:
            keep(place, _ungraded(line, edition, problem, "not_prepared"))
    with Grader(per_process=PER_PROCESS) as grader:
        places = list(requests)
        for index, result in grader.grade_all(
            list(requests.values()), at_once=at_once or os.cpu_count() or 1
        ):
            place = places[index]
            if result.judgement is not None:
                keep(place, report_on(requests[place], result.judgement))
            else:
                assert result.problem is not None
                keep(place, _ungraded(lines[place], edition, result.problem, "not_graded"))
    return tuple(reports[place] for place in range(len(lines)))


def _ungraded(line: SubmissionLine, edition: Edition, problem: Problem, outcome: ReportOutcome) -> Report:
    """Return the report on a line that can't be graded here, which is not a verdict on the submission."""
    path = None if line.submission_path is None else Path(line.submission_path)
    exists = path is not None and path.is_file() and path.suffix.lower() == ".csv"
    judgement = Judgement("grader_error" if exists else "no_file", None, str(problem))
    competition = registry.get(line.competition_id)
    made = make_report(competition, judgement, path, edition, datetime.now(UTC).isoformat())
    return replace(made, outcome=outcome)
