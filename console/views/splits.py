"""Which split a competition belongs to and what its cut-offs are, also for ids that nobody knows."""

from __future__ import annotations

from functools import cache

from competitions import registry
from competitions.leaderboards import percentile
from competitions.model import Competition, Thresholds
from foundation.problems import DataProblem, Problem
from state.records import Run

ORDER = ("low", "medium", "high", "dev", "other")


@cache
def split_of(competition_id: str) -> str:
    """The split of a competition: low, medium, high, dev, or other."""
    named = registry.splits()
    return next((name for name in ORDER if competition_id in named.get(name, ())), ORDER[-1])


@cache
def competition(competition_id: str) -> Competition | None:
    """A competition's facts, or None where a state names one that this version does not know."""
    try:
        return registry.get(competition_id)
    except Problem:
        return None


def thresholds(competition_id: str) -> Thresholds | None:
    """A competition's cut-offs, where they are known."""
    found = competition(competition_id)
    return None if found is None else found.thresholds


def percentile_of(run: Run) -> float | None:
    """The percentage of Kaggle's teams that a run's score beats; None where their scores are not known."""
    found = competition(run.competition_id)
    try:
        return None if found is None else percentile(found, run.score)
    except DataProblem:
        return None  # `leaderboards check` and grading tell what is wrong with the file
