"""What a row took: hours of runs and of GPUs, and how many of them for a medal, where that is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.scoreboard.evidence import Evidence
from engine.scoreboard.model import Measure


@dataclass(frozen=True)
class Effort:
    """Hours and medals of an experiment.

    Attributes:
        runs: how many runs tell how long they took; the hours are theirs alone.
        gpu_hours: None where it is not known how many GPUs a run had.
        medals: of those runs.
    """

    runs: int
    run_hours: float
    gpu_hours: float | None
    medals: int

    @property
    def run_hours_per_medal(self) -> float | None:
        """Hours of runs for one medal; None without a medal."""
        return self.run_hours / self.medals if self.medals else None

    @property
    def gpu_hours_per_medal(self) -> float | None:
        """Hours of GPUs for one medal; None without a medal, or where GPUs are not known."""
        return self.gpu_hours / self.medals if self.medals and self.gpu_hours is not None else None


def effort_of(evidence: Evidence) -> Effort:
    """Add up the latest attempts of all ended runs; what earlier attempts took is not in it."""
    timed = [(trial, trial.seconds) for trial in evidence.trials if trial.ended and trial.seconds]
    hours = math.fsum(seconds for _, seconds in timed) / 3600
    return Effort(
        runs=len(timed),
        run_hours=hours,
        gpu_hours=None if evidence.gpus is None else hours * evidence.gpus,
        medals=sum(trial.has(Measure.ANY_MEDAL) for trial, _ in timed),
    )
