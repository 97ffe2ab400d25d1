"""MLE-bench's grader of a competition and its report."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench.utils import get_logger, import_fn

if TYPE_CHECKING:
    import pandas as pd

    from mlebench_console.competitions.medals import Thresholds
    from mlebench_console.competitions.model import Competition

logger = get_logger(__name__)


class InvalidSubmissionError(Exception):
    """A submission that can't be graded; the message is for its author."""


class Grader:
    """A grader by the name of its metric and of its function, as MLE-bench's configurations have it."""

    def __init__(self, name: str, grade_fn: str) -> None:
        """Import the function of a name such as `package.module:function`."""
        self.name = name
        self.grade_fn: Callable[[pd.DataFrame, Any], float] = import_fn(grade_fn)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Grader:
        """Return the grader of a configuration."""
        return Grader(**data)

    def __call__(self, submission: pd.DataFrame, answers: Any) -> float | None:
        """Score a table against answers, rounded to five decimals; None for one that can't be scored."""
        try:
            score = self.grade_fn(submission, answers)
        except InvalidSubmissionError as error:
            logger.warning(f"Invalid submission: {error}")
            return None
        except Exception as error:  # noqa: BLE001 - whatever a grader raises is its verdict, as in MLE-bench
            logger.error(f"Unexpected error during grading: {error}")
            return None
        return round(score, 5)

    def is_lower_better(self, leaderboard: pd.DataFrame) -> bool:
        """Return whether lower scores are better, by the first and last score of a leaderboard."""
        scores = leaderboard["score"]
        return bool(scores.iloc[0] < scores.iloc[-1])

    def rank_score(self, score: float | None, leaderboard: pd.DataFrame) -> dict[str, Any]:
        """Return the medals of a score, and their cut-offs on a leaderboard."""
        from mlebench_console.engine.datasets.facts import thresholds_of

        return _ranked(score, thresholds_of(self.name, leaderboard["score"].tolist()))


class OwnGrader(Grader):
    """The grader of a competition of mlebench-console, edition v1."""

    def __init__(self, competition: Competition, data_dir: Path) -> None:
        self.name = competition.grader_name
        self._competition = competition
        self._data_dir = data_dir
        self.grade_fn = self._grade

    def _grade(self, submission: pd.DataFrame, answers: Any) -> float:
        """Score a table against answers, in a process with limits.

        Raises:
            InvalidSubmissionError: it can't be scored.
        """
        from mlebench_console import grade_submission

        with tempfile.TemporaryDirectory(prefix="mlebench-") as folder:
            handed_in = Path(folder, "submission.csv")
            # With a mark of its own in front, one that is left in the header is read as it is here.
            submission.to_csv(handed_in, index=False, encoding="utf-8-sig")
            report = grade_submission(
                handed_in,
                self._competition.id,
                data_dir=self._data_dir,
                answers=_written(answers, Path(folder)),
            )
        if report.score is None:
            raise InvalidSubmissionError(report.message or report.outcome)
        return report.score

    def is_lower_better(self, leaderboard: pd.DataFrame) -> bool:  # noqa: ARG002  # MLE-bench's signature
        """Return whether lower scores are better; known without a leaderboard."""
        return self._competition.thresholds.is_lower_better

    def rank_score(self, score: float | None, leaderboard: pd.DataFrame) -> dict[str, Any]:  # noqa: ARG002  # likewise
        """Return the medals of a score, and the cut-offs, which are known without a leaderboard."""
        return _ranked(score, self._competition.thresholds)


def _ranked(score: float | None, cut: Thresholds) -> dict[str, Any]:
    medal = cut.medal(score)
    return {
        "gold_medal": medal == "gold",
        "silver_medal": medal == "silver",
        "bronze_medal": medal == "bronze",
        "above_median": cut.above_median(score),
        "gold_threshold": cut.gold,
        "silver_threshold": cut.silver,
        "bronze_threshold": cut.bronze,
        "median_threshold": cut.median,
    }


def _written(answers: Any, folder: Path) -> Path:
    """Write answers as the files that they were read from."""
    if isinstance(answers, list):
        path = folder / "answers.jsonl"
        path.write_text("".join(f"{json.dumps(one)}\n" for one in answers), encoding="utf-8")
    else:
        path = folder / "answers.csv"
        answers.to_csv(path, index=False)
    return path


@dataclass(frozen=True)
class CompetitionReport:
    """The report on one submission."""

    competition_id: str
    score: float | None
    gold_threshold: float
    silver_threshold: float
    bronze_threshold: float
    median_threshold: float
    any_medal: bool
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    submission_exists: bool
    valid_submission: bool
    is_lower_better: bool
    created_at: datetime
    submission_path: str

    def to_dict(self) -> dict[str, Any]:
        """Return the report as it is written to files."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"created_at": self.created_at.isoformat()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CompetitionReport:
        """Read a report from a file, ignoring keys that MLE-bench does not have."""
        values = {field.name: data[field.name] for field in fields(cls)}
        return cls(**(values | {"created_at": datetime.fromisoformat(data["created_at"])}))
