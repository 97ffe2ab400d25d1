"""The facts of one competition as frozen dataclasses; how they are read from TOML is in `reading`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from foundation.problems import UsageProblem

Edition = Literal["v1", "corrected"]
EDITIONS: tuple[Edition, ...] = ("v1", "corrected")

Severity = Literal["leak", "wrong_score", "crash", "cosmetic"]
Treatment = Literal["mended", "told", "open"]
Medal = Literal["gold", "silver", "bronze"]
Parameter = int | float | str | bool | None


@dataclass(frozen=True)
class Prize:
    """What a place on Kaggle's own leaderboard was worth, in US dollars."""

    position: str
    value: int | float


@dataclass(frozen=True)
class Metric:
    """How submissions are scored, in words and as a formula."""

    name: str
    direction: Literal["higher", "lower"]
    formula: str
    details: str = ""


@dataclass(frozen=True)
class Thresholds:
    """The scores that earn a medal, taken from Kaggle's private leaderboard."""

    gold: float
    silver: float
    bronze: float
    median: float
    is_lower_better: bool
    confidence: str
    num_teams: int | None = None

    def medal(self, score: float | None) -> Medal | None:
        """The best medal a score earns; a tie with the cut-off counts, NaN and no score earn none."""
        if score is None:
            return None
        medals: tuple[tuple[Medal, float], ...]
        medals = (("gold", self.gold), ("silver", self.silver), ("bronze", self.bronze))
        for medal, cut in medals:
            if score <= cut if self.is_lower_better else score >= cut:
                return medal
        return None

    def above_median(self, score: float | None) -> bool:
        """Whether a score is strictly better than the median of the leaderboard."""
        if score is None:
            return False
        return score < self.median if self.is_lower_better else score > self.median


@dataclass(frozen=True)
class Checksums:
    """MD5 sums of the real data: of Kaggle's zip and of the top-level tables prepared from it."""

    zip: str | None = None
    public: Mapping[str, str] = field(default_factory=dict)
    private: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Defect:
    """Something wrong in edition v1 of a competition, and what edition corrected does about it.

    Attributes:
        id: its name within the competition; the tests that show it mended give it.
        treatment: `mended` in edition corrected, only `told` (cosmetic), or still `open`.
        remedy: how it is mended, or what would be right.
        known: where MLE-bench itself mentions it.
    """

    id: str
    text: str
    severity: Severity
    treatment: Treatment
    remedy: str = ""
    known: str | None = None


@dataclass(frozen=True, kw_only=True)
class Competition:
    """Everything that is fixed about one competition.

    Attributes:
        complexity: the split it belongs to (`low`, `medium`, `high`, or `dev`, which is outside the 75).
        answers: the answers file, relative to the competition's `prepared/` folder.
        sample_submission: the sample submission, relative to `prepared/`.
        gold_submission: a perfect submission where the answers are not one, relative to `prepared/`.
        parameters: the numbers that the split and the metric fix.
        classes: the names of the classes, where the competition fixes a list of them.
        excluded: why edition corrected leaves this competition out, or None.
        needs: libraries beyond pandas and numpy that its task imports.
        hosts: who held it and what else it is known by; an obfuscated description names none of them.
        renamings: what an obfuscated description says instead of a phrase.
        folder: where its description and task lie.
    """

    id: str
    name: str
    category: str
    complexity: Literal["low", "medium", "high", "dev"]
    kaggle_type: str
    awards_medals: bool
    prizes: tuple[Prize, ...] = ()
    metric: Metric
    grader_name: str
    thresholds: Thresholds
    checksums: Checksums = Checksums()
    answers: str
    sample_submission: str
    gold_submission: str | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()
    excluded: str | None = None
    size_gb: float | None = None
    needs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    renamings: Mapping[str, str] = field(default_factory=dict)
    folder: Path

    @property
    def task_path(self) -> Path:
        """The module with `prepare` and `grade`."""
        return self.folder / "task.py"

    @property
    def description_path(self) -> Path:
        """The text from which an agent works."""
        return self.folder / "description.md"

    @property
    def available(self) -> bool:
        """Whether this competition can be prepared and graded here: its task is written."""
        return self.task_path.is_file()

    def defects_in(self, edition: Edition) -> tuple[str, ...]:
        """The defects, cosmetic ones left out, that touch results of an edition."""
        return tuple(
            defect.text
            for defect in self.defects
            if defect.severity != "cosmetic" and not (edition == "corrected" and defect.treatment == "mended")
        )

    @property
    def rules_url(self) -> str:
        """The page on which a person accepts the competition's rules."""
        return f"https://www.kaggle.com/c/{self.id}/rules"


def edition_named(name: str) -> Edition:
    """The edition of a name.

    Raises:
        UsageProblem: there is no such edition.
    """
    for edition in EDITIONS:
        if name == edition:
            return edition
    raise UsageProblem(f"there is no edition '{name}'", "", "Known are: v1, corrected.")
