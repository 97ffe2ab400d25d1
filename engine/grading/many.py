"""Grading many submissions at once, each in a child process; what can't be graded stops none of the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from competitions import registry
from competitions.judging import Judgement
from competitions.model import Edition
from engine.grading.batch import BatchReport
from engine.grading.child import GradeRequest, grade_in_child
from engine.grading.report import Report, make_report
from engine.rungroups import SubmissionLine
from foundation.problems import Problem


@dataclass(frozen=True)
class Graded:
    """One line, its report, and how far the whole is: `done` of `total`."""

    line: SubmissionLine
    report: Report
    done: int
    total: int


def grade_many(
    lines: Sequence[SubmissionLine],
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    at_once: int | None = None,
    on_graded: Callable[[Graded], None] | None = None,
) -> BatchReport:
    """Grade submissions in parallel; the reports stand in the order of the lines.

    Args:
        lines: what to grade.
        data_dir: where datasets lie.
        edition: which graders and which prepared data.
        at_once: how many children there may be; as many as processors, if not given.
        on_graded: told of each as it is done, in this thread.

    Raises:
        UsageProblem: a line names an unknown competition; nothing has been graded then.
    """
    for line in lines:
        registry.get(line.competition_id)
    base = None if data_dir is None else str(data_dir)
    reports: dict[int, Report] = {}
    # The threads only wait: each submission is graded in a process of its own.
    with ThreadPoolExecutor(max_workers=at_once or os.cpu_count()) as pool:
        places: dict[Future[Report], int] = {
            pool.submit(_grade_line, line, base, edition): place for place, line in enumerate(lines)
        }
        try:
            for done, future in enumerate(as_completed(places), start=1):
                place = places[future]
                reports[place] = future.result()
                if on_graded is not None:
                    on_graded(Graded(lines[place], reports[place], done, len(lines)))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return BatchReport(tuple(reports[place] for place in range(len(lines))))


def _grade_line(line: SubmissionLine, data_dir: str | None, edition: Edition) -> Report:
    request = GradeRequest(
        line.submission_path, line.competition_id, data_dir, edition=edition, follow_links=True
    )
    try:
        return grade_in_child(request)
    except Problem as problem:
        # A dataset that is not prepared says nothing about the submission; the line is kept all the same.
        path = None if line.submission_path is None else Path(line.submission_path)
        there = path is not None and path.is_file() and path.suffix.lower() == ".csv"
        judgement = Judgement("grader_error" if there else "no_file", None, str(problem))
        competition = registry.get(line.competition_id)
        made = make_report(competition, judgement, path, edition, datetime.now(UTC).isoformat())
        return replace(made, outcome="not_prepared")
