"""Make requests for `competitions.grader` from prepared datasets, and reports from its judgements."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from mlebench_console.competitions.judging import GradeRequest, Judgement
from mlebench_console.competitions.model import Edition, Parameter
from mlebench_console.competitions.registry import get
from mlebench_console.engine.grading.report import Report, make_report
from mlebench_console.engine.layout import (
    DatasetFolder,
    can_grade,
    dataset_folder,
    descriptions_of,
    unprepared,
)
from mlebench_console.foundation.problems import DataProblem


def request_for(
    submission_path: Path | str | None,
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    answers: Path | str | None = None,
    follow_links: bool = False,
    form_only: bool = False,
) -> GradeRequest:
    """Make the request to grade a submission against a prepared dataset, or to check its form, without answers.

    Raises:
        Problem: unknown competition, or its dataset is not prepared.
    """
    competition = get(competition_id)
    folder = dataset_folder(competition, data_dir, edition)
    given = None if answers is None else Path(answers)
    if given is not None and not given.is_file():
        raise DataProblem(f"Answers file {given} was not found")
    needed = folder.prepared / ("public" if form_only else competition.answers)
    if given is None and not (needed.is_dir() if form_only else can_grade(competition, folder)):
        raise unprepared(competition.id, f"{needed} is missing")
    submission = None if submission_path is None else Path(submission_path)
    return GradeRequest(
        competition_id,
        submission,
        folder.prepared,
        edition,
        parameters,
        given,
        follow_links,
        form_only=form_only,
    )


def report_on(request: GradeRequest, judgement: Judgement, descriptions: str | None = None) -> Report:
    """Return the report on a judgement; `descriptions` is the kind of descriptions, by default the dataset's."""
    known = descriptions or descriptions_of(DatasetFolder(request.prepared.parent, request.edition))
    return make_report(
        get(request.competition_id),
        judgement,
        request.submission,
        request.edition,
        datetime.now(UTC).isoformat(),
        known,
    )
