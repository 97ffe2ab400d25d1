"""MLE-bench's grader of a competition and its report."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench.utils import get_logger
from mlebench_console.competitions import registry

if TYPE_CHECKING:
    import pandas as pd

logger = get_logger(__name__)


class InvalidSubmissionError(Exception):
    """A submission that can't be graded; the message is for its author."""


@dataclass(frozen=True)
class Grader:
    """The grader of one competition, edition v1.

    Attributes:
        name: the name of its metric.
        competition_id: its competition.
        data_dir: the folder with its dataset.
    """

    name: str
    competition_id: str
    data_dir: Path

    def grade_fn(self, submission: pd.DataFrame, answers: Any) -> float:
        """Score a table against answers, in a process with limits.

        Raises:
            InvalidSubmissionError: it can't be scored.
        """
        from mlebench_console import grade_submission

        with tempfile.TemporaryDirectory(prefix="mlebench-") as folder:
            handed_in = Path(folder, "submission.csv")
            submission.to_csv(handed_in, index=False)
            report = grade_submission(
                handed_in,
                self.competition_id,
                data_dir=self.data_dir,
                answers=_written(answers, Path(folder)),
            )
        if report.score is None:
            raise InvalidSubmissionError(report.message or report.outcome)
        return report.score

    def __call__(self, submission: pd.DataFrame, answers: Any) -> float | None:
        """Score a table against answers; None for one that can't be scored."""
        try:
            return self.grade_fn(submission, answers)
        except InvalidSubmissionError as error:
            logger.warning(f"Invalid submission: {error}")
            return None

    def is_lower_better(self, leaderboard: pd.DataFrame) -> bool:  # noqa: ARG002  # MLE-bench's signature
        """Return whether lower scores are better; known without a leaderboard."""
        return registry.get(self.competition_id).thresholds.is_lower_better

    def rank_score(self, score: float | None, leaderboard: pd.DataFrame) -> dict[str, Any]:  # noqa: ARG002  # likewise
        """Return the medals of a score, and the cut-offs, which are known without a leaderboard."""
        cut = registry.get(self.competition_id).thresholds
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
