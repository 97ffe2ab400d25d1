"""What does the work, with no screen; the three functions here are the stable interface for programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from competitions.model import Edition, Parameter
    from engine.grading.report import Report, Verdict

__all__ = ["grade_submission", "prepare_competition", "validate_submission"]


def prepare_competition(
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    raw: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    verify: bool | None = None,
    descriptions: str = "ours",
) -> Path:
    """Prepare a competition's dataset and return its `prepared` folder.

    Args:
        competition_id: which competition.
        data_dir: where datasets lie; the user's cache, shared with MLE-bench, if not given.
        raw: an already extracted Kaggle folder, which is left untouched.
        edition: `v1` reproduces MLE-bench to the byte, `corrected` mends its defects.
        parameters: replaces numbers that the competition fixes for the real data.
        verify: whether to compare with the known checksums; by default only what comes from Kaggle's zip.
        descriptions: whose text the agent finds beside the data: `ours`, `obfuscated`, `kaggle`, or a folder.

    Raises:
        Problem: unknown competition, raw data missing, damaged or not as known.
    """
    from engine.preparing import prepare

    return prepare(
        competition_id,
        data_dir=data_dir,
        raw=raw,
        edition=edition,
        parameters=parameters,
        verify=verify,
        descriptions=descriptions,
    )


def grade_submission(
    submission_path: Path | str | None,
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    answers: Path | str | None = None,
) -> Report:
    """Score one submission file; a bad one gives a report without a score, never an exception.

    Raises:
        Problem: unknown competition, or its dataset is not prepared.
    """
    from engine.grading.single import grade

    return grade(
        submission_path,
        competition_id,
        data_dir=data_dir,
        edition=edition,
        parameters=parameters,
        answers=answers,
    )


def validate_submission(
    submission_path: Path | str | None,
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    answers: Path | str | None = None,
) -> Verdict:
    """Tell whether a submission file is valid, why not, and what it earns.

    Raises:
        Problem: unknown competition, or its dataset is not prepared.
    """
    from engine.grading.report import Verdict

    report = grade_submission(
        submission_path,
        competition_id,
        data_dir=data_dir,
        edition=edition,
        parameters=parameters,
        answers=answers,
    )
    return Verdict(report.valid_submission, report.message, report.score, report.medal)
