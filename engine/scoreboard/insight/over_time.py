"""The medal rate over time: what a row would be had the limit been shorter, from grades of live submissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.scoreboard.aggregation import aggregate, complete_seeds
from engine.scoreboard.evidence import Evidence, Trial
from engine.scoreboard.experiments import earned_by
from engine.scoreboard.model import Cell, Measure, Result
from state import runs, submissions
from state.database import Database

# The limits to ask about, as far as they are below the real one.
HOURS = (1.0, 2.0, 4.0, 8.0, 12.0)
# Of short limits, as a demo has, these parts are asked about instead.
_PARTS = (0.125, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Curve:
    """One trial over time: when each graded submission was there, and what it counted for."""

    trial: Trial
    points: tuple[tuple[float, frozenset[Measure]], ...]

    def at(self, seconds: float) -> frozenset[Measure]:
        """What it would have counted for, had the agent been stopped then."""
        if self.trial.seconds is not None and seconds >= self.trial.seconds:
            return self.trial.earned or frozenset()
        earned: frozenset[Measure] = frozenset()
        for elapsed, worth in self.points:
            if elapsed > seconds:
                break
            earned = worth
        return earned


@dataclass(frozen=True)
class TimePoint:
    """The row at one limit; `full` is the limit that the runs really had."""

    hours: float
    cell: Cell
    full: bool = False


def curves_of(database: Database, evidence: Evidence) -> tuple[Curve, ...]:
    """Read the graded submissions of every trial of ours that counts; others have no history."""
    found = []
    for trial in evidence.trials:
        if trial.earned is None or trial.run_id is None:
            continue
        attempt = runs.latest_attempt(database, trial.run_id)
        taken = [] if attempt is None else submissions.of_attempt(database, attempt.id)
        points = tuple(
            (one.elapsed_seconds, earned_by(trial.competition_id, one.standing, one.score))
            for one in taken
            if one.standing is not None
        )
        found.append(Curve(trial, points))
    return tuple(found)


def limits_for(limit_hours: float | None) -> tuple[float, ...]:
    """The limits to ask about for runs that had `limit_hours`."""
    if limit_hours is None:
        return ()
    shorter = tuple(hours for hours in HOURS if hours < limit_hours)
    return shorter or tuple(part * limit_hours for part in _PARTS)


def what_if(
    curves: Sequence[Curve],
    limit_hours: float | None,
    *,
    members: Sequence[str] | None = None,
    measure: Measure = Measure.ANY_MEDAL,
) -> tuple[TimePoint, ...]:
    """Aggregate what trials had counted for at shorter limits, then at the real one.

    A submission that was replaced before the next look at it was never graded, and an agent that knows of
    a shorter limit would work otherwise: it is an estimate from below. Empty where no seed is complete.
    """
    competitions = members or sorted({curve.trial.competition_id for curve in curves})
    taken = [curve for curve in curves if curve.trial.competition_id in set(competitions)]
    whole = [Result(curve.trial.competition_id, curve.trial.earned or frozenset()) for curve in taken]
    if limit_hours is None or not competitions or not complete_seeds(whole, competitions):
        return ()
    points = []
    for hours in limits_for(limit_hours):
        results = [Result(curve.trial.competition_id, curve.at(hours * 3600)) for curve in taken]
        points.append(TimePoint(hours, aggregate(results, competitions)[measure]))
    full = aggregate(whole, competitions)[measure]
    return (*points, TimePoint(limit_hours, full, full=True))
