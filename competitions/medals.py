"""Medals: the cut-offs of a competition, and what a score earns by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from mlebench_console.foundation.fields import Bounds

Medal = Literal["gold", "silver", "bronze"]
Confidence = Literal["low", "medium", "high"]
_Finite = Annotated[float, Bounds("a finite number")]


@dataclass(frozen=True)
class Thresholds:
    """The scores that earn a medal, taken from Kaggle's private leaderboard; none is better than the one before.

    Attributes:
        gold: the worst score that earns gold.
        silver: the worst score that earns silver.
        bronze: the worst score that earns bronze.
        median: the score in the middle of the leaderboard.
        is_lower_better: the metric's direction.
        confidence: how sure these figures are.
        num_teams: how many teams the leaderboard has.
    """

    gold: _Finite
    silver: _Finite
    bronze: _Finite
    median: _Finite
    is_lower_better: bool
    confidence: Confidence
    num_teams: int | None = None

    def medal(self, score: float | None) -> Medal | None:
        """Return the best medal a score earns; a tie with the cut-off counts, NaN and no score earn none."""
        if score is None:
            return None
        medals: tuple[tuple[Medal, float], ...]
        medals = (("gold", self.gold), ("silver", self.silver), ("bronze", self.bronze))
        for medal, cut in medals:
            if score <= cut if self.is_lower_better else score >= cut:
                return medal
        return None

    def above_median(self, score: float | None) -> bool:
        """Return whether a score is strictly better than the median of the leaderboard."""
        if score is None:
            return False
        return score < self.median if self.is_lower_better else score > self.median
