"""The report on one submission, with the fields and rounding of MLE-bench; scores are computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from mlebench_console.competitions.judging import Judgement, Outcome
from mlebench_console.competitions.leaderboards import percentile
from mlebench_console.competitions.medals import Medal
from mlebench_console.competitions.model import Competition, Edition
from mlebench_console.state.lifecycle import Outcome as Standing

# The outcome of grading; the last two are not verdicts: the dataset is missing, or the grader failed.
ReportOutcome = Literal[Outcome, "not_prepared", "not_graded"]


@dataclass(frozen=True)
class Report:
    """The report on one submission.

    The fields up to `submission_path` are MLE-bench's, in its order; `to_dict()` contains the others only if extended.

    Attributes:
        outcome: distinguishes no file, no CSV, a refused one, a failing grader and exceeded limits.
        message: why there is no score, for the submission's author.
        detail: a traceback for the engine's log when the grader failed; never shown to an agent.
        defects: the known defects of this competition that this edition does not fix.
        descriptions: the descriptions that the agent had: `ours`, `obfuscated`, `kaggle`, a folder, or `unknown`.
        percentile: the percentage of Kaggle's teams that the score beats; None where only the cut-offs are known.
    """

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
    created_at: str
    submission_path: str
    edition: Edition = "v1"
    outcome: ReportOutcome = "scored"
    message: str = ""
    detail: str = ""
    defects: tuple[str, ...] = ()
    descriptions: str = "unknown"
    percentile: float | None = None

    @property
    def medal(self) -> Medal | None:
        """The medal earned, if any."""
        if self.gold_medal:
            return "gold"
        if self.silver_medal:
            return "silver"
        return "bronze" if self.bronze_medal else None

    def to_dict(self, *, extended: bool = False) -> dict[str, Any]:
        """Return the report as MLE-bench writes it; `extended` adds this project's own fields."""
        names = [field.name for field in fields(self)]
        if not extended:
            names = names[: names.index("submission_path") + 1]
        values = {name: getattr(self, name) for name in names}
        return values | {"defects": list(self.defects)} if extended else values

    def to_public_dict(self) -> dict[str, Any]:
        """Return the report for a file: MLE-bench's fields, then ours without `detail`, which may reveal answers."""
        return {name: value for name, value in self.to_dict(extended=True).items() if name != "detail"}


@dataclass(frozen=True)
class Validation:
    """Whether a submission is valid, why not, and what it earns."""

    valid: bool
    message: str
    score: float | None
    medal_tier: Medal | None


def make_report(
    competition: Competition,
    judgement: Judgement,
    submission: Path | None,
    edition: Edition,
    created_at: str,
    descriptions: str = "unknown",
) -> Report:
    """Return the report on a judgement, with the medal cut-offs and what the score earns."""
    score = judgement.rounded
    cut = competition.thresholds
    medal = cut.medal(score)
    return Report(
        competition_id=competition.id,
        score=score,
        gold_threshold=cut.gold,
        silver_threshold=cut.silver,
        bronze_threshold=cut.bronze,
        median_threshold=cut.median,
        any_medal=medal is not None,
        gold_medal=medal == "gold",
        silver_medal=medal == "silver",
        bronze_medal=medal == "bronze",
        above_median=cut.above_median(score),
        submission_exists=judgement.outcome != "no_file",
        valid_submission=score is not None,
        is_lower_better=cut.is_lower_better,
        created_at=created_at,
        submission_path=str(submission),
        edition=edition,
        outcome=judgement.outcome,
        message=judgement.message,
        detail=judgement.detail,
        defects=competition.defects_in(edition),
        descriptions=descriptions,
        percentile=percentile(competition, score),
    )


def standing_of(report: Report) -> Standing:
    """Return the outcome of a run with this report."""
    if not report.submission_exists:
        return Standing.NO_SUBMISSION
    if not report.valid_submission:
        return Standing.INVALID
    if report.medal is not None:
        return Standing(report.medal)
    return Standing.ABOVE_MEDIAN if report.above_median else Standing.BELOW_MEDIAN
