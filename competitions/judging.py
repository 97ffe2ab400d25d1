"""Scoring one submission: reads the file under limits, runs the competition's grader, never raises for a bad file.

Medals and reports are the engine's; the grading server beside an agent uses this module alone.
"""

from __future__ import annotations

import hashlib
import math
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from competitions.model import Edition, Parameter
from competitions.registry import get, load_task
from competitions.submissions import NoSubmission, NotCsv, SubmissionFile, limits_for
from competitions.task import Grading, InvalidSubmission, merge_parameters, refuse_excluded
from foundation.files import reading_untrusted
from foundation.problems import DataProblem

Outcome = Literal["scored", "no_file", "not_csv", "rejected", "grader_error", "limits_exceeded"]

_BLOCK = 1 << 20
VALID = "The submission is valid."


@dataclass(frozen=True)
class GradeRequest:
    """One submission to grade.

    Attributes:
        competition_id: whose grader to run.
        submission: the file; None stands for a run that left none.
        prepared: the dataset's folder with `private/` in it.
        edition: which grader.
        parameters: replaces numbers that the competition fixes.
        answers: grade against this file instead of the prepared answers.
        follow_links: accept a symbolic link; only for files that an operator names, never for an agent's.
        sha256: of the bytes that were handed in; where the file has others, it is not graded. Empty: unknown.
    """

    competition_id: str
    submission: Path | None
    prepared: Path
    edition: Edition = "v1"
    parameters: Mapping[str, Parameter] | None = None
    answers: Path | None = None
    follow_links: bool = False
    sha256: str = ""


@dataclass(frozen=True)
class Judgement:
    """What became of a submission.

    Attributes:
        score: in full precision; None unless the outcome is `scored`.
        message: for the submission's author; says nothing about the answers.
        detail: a traceback for the operator when the grader itself failed.
    """

    outcome: Outcome
    score: float | None
    message: str
    detail: str = ""


def judge(request: GradeRequest) -> Judgement:
    """Score a submission against the answers in a prepared dataset.

    Raises:
        Problem: what was asked for cannot be done whatever the submission is.
    """
    competition = get(request.competition_id)
    if request.sha256:
        _require_bytes(request)
    refuse_excluded(competition, request.edition)
    task = load_task(competition)
    merged = merge_parameters(competition, request.parameters)
    answers_path = request.answers or request.prepared / competition.answers
    limits = limits_for(answers_path, request.prepared / competition.sample_submission)
    source = SubmissionFile(request.submission, limits, request.follow_links)
    try:
        table = source.read()
        case = Grading(
            competition=competition,
            edition=request.edition,
            parameters=merged,
            submission=table,
            answers_path=answers_path,
            private=request.prepared / "private",
            source=source,
        )
        score = float(task.grade(case))
    except NoSubmission as error:
        return Judgement("no_file", None, str(error))
    except NotCsv as error:
        return Judgement("not_csv", None, str(error))
    except InvalidSubmission as error:
        return Judgement("rejected", None, str(error))
    except MemoryError:
        return Judgement(
            "limits_exceeded", None, "Grading the submission needs more memory than it may take."
        )
    except Exception:  # noqa: BLE001 a grader must not end its caller, and its text may reveal answers
        return Judgement(
            "grader_error",
            None,
            "The submission could not be graded; its form is unusual.",
            traceback.format_exc(),
        )
    if math.isnan(score) and request.edition == "corrected":
        return Judgement("rejected", None, "The metric is not defined for these predictions (NaN).")
    return Judgement("scored", score, VALID)


def _require_bytes(request: GradeRequest) -> None:
    """Refuse to grade a file that is not what was handed in: whatever became of it, its author did not do it.

    Raises:
        DataProblem: it can't be read, or has been changed.
    """
    if request.submission is None:
        raise DataProblem("there is no file of what was handed in")
    try:
        with reading_untrusted(request.submission) as stream:
            digest = hashlib.sha256()
            while block := stream.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise DataProblem(f"{request.submission} can't be read", error.strerror or str(error)) from error
    found = digest.hexdigest()
    if found != request.sha256:
        raise DataProblem(
            f"{request.submission} is not what was handed in", f"its SHA-256 is {found}, not {request.sha256}"
        )
