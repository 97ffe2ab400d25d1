"""Grading one submission in this process; `child` does the same under limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from competitions.judging import judge
from competitions.model import Edition, Parameter
from competitions.registry import get
from engine.grading.report import Report, make_report
from engine.layout import can_grade, dataset_folder, descriptions_of
from foundation.problems import DataProblem


def grade(
    submission_path: Path | str | None,
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    answers: Path | str | None = None,
    follow_links: bool = True,
    descriptions: str | None = None,
) -> Report:
    """Grade a submission against a prepared dataset; see `engine.grade_submission`.

    Args:
        submission_path: the file; None for a run that left none.
        competition_id: which competition.
        data_dir: where datasets lie.
        edition: which grader and which prepared data.
        parameters: replaces numbers that the competition fixes.
        answers: grade against this file instead of the prepared answers.
        follow_links: accept a symbolic link; for files named by the operator only.
        descriptions: whose text the agent had, where that is not the dataset's.

    Raises:
        Problem: unknown competition, or its dataset is not prepared.
    """
    competition = get(competition_id)
    folder = dataset_folder(competition, data_dir, edition)
    given = None if answers is None else Path(answers)
    if given is not None and not given.is_file():
        raise DataProblem(f"Answers file {given} was not found")
    if given is None and not can_grade(competition, folder):
        raise DataProblem(
            f"{competition.id} is not prepared",
            f"{folder.prepared / competition.answers} is missing",
            f"Prepare it: mlebench-console prepare -c {competition.id}",
        )
    submission = None if submission_path is None else Path(submission_path)
    judgement = judge(
        competition,
        submission,
        prepared=folder.prepared,
        edition=edition,
        parameters=parameters,
        answers=given,
        follow_links=follow_links,
    )
    now = datetime.now(UTC).isoformat()
    return make_report(
        competition, judgement, submission, edition, now, descriptions or descriptions_of(folder)
    )
