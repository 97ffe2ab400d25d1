"""How runs ended, medals and failures alike, counted by split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from competitions import registry
from engine.scoreboard.evidence import Evidence, Trial
from engine.scoreboard.model import Measure

# Best first, then what the agent failed at, then what it is not to blame for.
ENDINGS = (
    "gold",
    "silver",
    "bronze",
    "above median",
    "below median",
    "invalid",
    "no submission",
    "timeout",
    "memory",
    "disk",
    "crash",
    "unknown",
    "infrastructure",
    "stopped",
    "not ended",
)


@dataclass(frozen=True)
class EndingsOfSplit:
    """How many runs of a split ended how; endings that no run had are left out."""

    split: str
    runs: int
    counts: Mapping[str, int]


def ending_of(trial: Trial) -> str:
    """How a trial ended, one of `ENDINGS`."""
    if not trial.ended:
        return "not ended"
    if trial.failure:
        return trial.failure
    if trial.earned is None:
        return "stopped"
    for medal in (Measure.GOLD, Measure.SILVER, Measure.BRONZE):
        if medal in trial.earned:
            return medal.value
    if Measure.VALID in trial.earned:
        return "above median" if Measure.ABOVE_MEDIAN in trial.earned else "below median"
    return "invalid" if Measure.SUBMISSION in trial.earned else "no submission"


def endings_by_split(evidence: Evidence) -> tuple[EndingsOfSplit, ...]:
    """Count endings by complexity, then over all; splits without runs are left out."""
    found: dict[str, Counter[str]] = {}
    for trial in evidence.trials:
        ending = ending_of(trial)
        for split in (registry.get(trial.competition_id).complexity, "all"):
            found.setdefault(split, Counter())[ending] += 1
    order = ("low", "medium", "high", "dev", "all")
    return tuple(
        EndingsOfSplit(
            split,
            found[split].total(),
            {ending: found[split][ending] for ending in ENDINGS if found[split][ending]},
        )
        for split in order
        if split in found
    )
