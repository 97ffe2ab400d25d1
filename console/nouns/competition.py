"""A competition's split, facts and cut-offs, also for ids that this version does not know."""

from __future__ import annotations

from functools import cache

from mlebench_console.competitions import registry
from mlebench_console.competitions.leaderboards import percentile
from mlebench_console.competitions.medals import Thresholds
from mlebench_console.competitions.model import Competition
from mlebench_console.foundation.problems import DataProblem, Problem
from mlebench_console.state.records import Run

ORDER = ("low", "medium", "high", "dev", "other")


@cache
def split_of(competition_id: str) -> str:
    """Return the split of a competition: low, medium, high, dev, or other."""
    named = registry.splits()
    return next((name for name in ORDER if competition_id in named.get(name, ())), ORDER[-1])


@cache
def competition(competition_id: str) -> Competition | None:
    """Return a competition's facts; None for an id that this version does not know."""
    try:
        return registry.get(competition_id)
    except Problem:
        return None


def thresholds(competition_id: str) -> Thresholds | None:
    """Return a competition's cut-offs; None if unknown."""
    found = competition(competition_id)
    return None if found is None else found.thresholds


def percentile_of(run: Run) -> float | None:
    """Return the percentage of Kaggle's teams that a run's score beats; None if their scores are unknown."""
    found = competition(run.competition_id)
    try:
        return None if found is None else percentile(found, run.score)
    except DataProblem:
        return None  # `leaderboards check` and grading report what is wrong with the file
