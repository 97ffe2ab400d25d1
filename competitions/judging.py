"""Judge one submission: read the file under limits and run the competition's grader; a bad file never raises.

A submission is scored against the answers, or only its form is checked, from public data alone: agents see the
latter. Medals and reports are the engine's; the validation server beside an agent uses this module alone.
"""

from __future__ import annotations

import hashlib
import math
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from mlebench_console.competitions.model import Edition, Parameter
from mlebench_console.competitions.registry import get, load_task
from mlebench_console.competitions.submissions import (
    NoSubmission,
    NotCsv,
    SubmissionFile,
    TooLargeToRead,
    limits_for,
    limits_like,
)
from mlebench_console.competitions.task import (
    Grading,
    InvalidSubmission,
    PublicData,
    merge_parameters,
    refuse_excluded,
)
from mlebench_console.foundation.files import reading_untrusted
from mlebench_console.foundation.problems import DataProblem

if TYPE_CHECKING:
    import pandas as pd

Outcome = Literal["scored", "no_file", "not_csv", "too_large", "rejected", "grader_error", "limits_exceeded"]

_BLOCK = 1 << 20
_ABOUT_A_ROW = re.compile(r"(?:^|\. )Row \d")
VALID = "The submission is valid."
SCORE_DECIMALS = 5
_EMPTY = "The file is empty: it has no header and no rows."


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
        sha256: of the bytes that the agent submitted; a file with other bytes is not graded. Empty: unknown.
        form_only: check only the form, from the submission and `public/` alone; nothing private is read, so that
            neither the verdict nor the time it takes can depend on the answers.
    """

    competition_id: str
    submission: Path | None
    prepared: Path
    edition: Edition = "v1"
    parameters: Mapping[str, Parameter] | None = None
    answers: Path | None = None
    follow_links: bool = False
    sha256: str = ""
    form_only: bool = False


@dataclass(frozen=True)
class Judgement:
    """The verdict on a submission.

    Attributes:
        outcome: where only the form was checked, `scored` means that it is right.
        score: in full precision; None unless the outcome is `scored`, and where only the form was checked.
        message: for the submission's author; says nothing about the answers.
        detail: a traceback for the operator when the grader itself failed.
        rounded: the score as reports have it; None without a score.
    """

    outcome: Outcome
    score: float | None
    message: str
    detail: str = ""
    rounded: float | None = None

    @classmethod
    def scored(cls, score: float, message: str) -> Judgement:
        """Return the verdict on a graded submission.

        Args:
            score: as the metric returns it: numpy rounds an `np.float64` by another rule than Python rounds a float,
                and MLE-bench rounds what its metric returns.
            message: for the submission's author.
        """
        return cls("scored", float(score), message, rounded=float(round(score, SCORE_DECIMALS)))


def judge(request: GradeRequest) -> Judgement:
    """Score a submission against the answers in a prepared dataset, or check its form without them.

    Raises:
        Problem: grading is impossible for a reason that is not the submission's.
    """
    competition = get(request.competition_id)
    if request.sha256:
        _require_bytes(request)
    refuse_excluded(competition, request.edition)
    task = load_task(competition)
    merged = merge_parameters(competition, request.parameters)
    sample = request.prepared / competition.sample_submission
    stand_in = None
    if request.form_only:
        public = PublicData(competition, request.edition, merged, request.prepared / "public")
        answers_path, stand_in = sample, _stand_in(task, public)
    else:
        answers_path = request.answers or request.prepared / competition.answers
    limits = limits_for(answers_path, sample) if stand_in is None else limits_like(stand_in)
    source = SubmissionFile(request.submission, limits, request.follow_links)
    table: pd.DataFrame | None = None
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
            form_only=request.form_only,
            stand_in=stand_in,
        )
        try:
            score = task.grade(case)
        except InvalidSubmission as error:  # the message may read the file again, to quote from it
            return Judgement("rejected", None, _message(error, source, table))
    except NoSubmission as error:
        return Judgement("no_file", None, str(error))
    except TooLargeToRead as error:
        return Judgement("too_large", None, str(error))
    except NotCsv as error:
        return Judgement("not_csv", None, str(error))
    except MemoryError:
        return Judgement(
            "limits_exceeded", None, "Grading the submission needs more memory than it may take."
        )
    except Exception:  # noqa: BLE001 a grader must not end its caller, and its text may reveal answers
        return Judgement(
            "grader_error",
            None,
            _EMPTY
            if table is not None and _is_empty(table)
            else "The grader fails with this submission; compare its form with that of the sample submission.",
            traceback.format_exc(),
        )
    message = " ".join([VALID, *case.warnings])
    if request.form_only:  # a score against stand-ins means nothing
        return Judgement("scored", None, message)
    if math.isnan(score) and request.edition == "corrected":
        return Judgement("rejected", None, "The metric is not defined for these predictions (NaN).")
    return Judgement.scored(score, message)


def _is_empty(table: pd.DataFrame) -> bool:
    """Return whether a file had no line at all, not even a header: naming a missing column would mislead."""
    return not len(table.columns)


def _message(error: InvalidSubmission, source: SubmissionFile, table: pd.DataFrame) -> str:
    """Return what the submission's author reads about a refusal."""
    import pandas as pd

    if _is_empty(table):
        return _EMPTY
    message = error.message_quoting(source)
    if _ABOUT_A_ROW.search(message):
        message += " Rows are counted from 1, without the header."
    if not isinstance(table.index, pd.RangeIndex):
        message += " The rows have more cells than the header; their first ones were taken for labels."
    return message


def _require_bytes(request: GradeRequest) -> None:
    """Refuse to grade a file that is not the one submitted: whoever changed it, its author must not pay for it.

    Raises:
        DataProblem: it can't be read, or has been changed.
    """
    if request.submission is None:
        raise DataProblem("the submitted file is missing")
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
            f"{request.submission} is not the submitted file", f"its SHA-256 is {found}, not {request.sha256}"
        )


def _stand_in(task: ModuleType, data: PublicData) -> pd.DataFrame | None:
    """Return the task's stand-in for the answers, made from public data; None where the sample submission serves."""
    make: Callable[[PublicData], pd.DataFrame] | None = getattr(task, "stand_in_answers", None)
    try:
        if make is not None:
            return make(data)
        (data.public / Path(data.competition.sample_submission).name).stat()
    except (OSError, ValueError, KeyError) as error:
        raise DataProblem(
            f"{data.competition.id}: submissions cannot be checked against {data.public}",
            f"{type(error).__name__}: {error}",
            "Prepare the dataset again.",
        ) from error
    return None
