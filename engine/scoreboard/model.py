"""What a scoreboard consists of, as frozen dataclasses; how the numbers come about is in `aggregation`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

# The columns of the published leaderboard, and the split that each of them covers.
COLUMNS: Mapping[str, str] = {"low": "low", "medium": "medium", "high": "high", "all": "split75"}

Table = Literal["own", "imported", "main", "additional"]

# Of a normal distribution, 95 % lies within this many standard deviations of the mean.
_Z_95 = 1.96


class Measure(StrEnum):
    """What can be counted over a split's competitions."""

    SUBMISSION = "submission"
    VALID = "valid"
    ABOVE_MEDIAN = "above_median"
    GOLD = "gold"
    SILVER = "silver"
    BRONZE = "bronze"
    ANY_MEDAL = "any_medal"

    @property
    def words(self) -> str:
        """Its name for people."""
        return self.value.replace("_", " ")


# What is asked most comes first.
MEASURES_BY_INTEREST = (
    Measure.ANY_MEDAL,
    Measure.GOLD,
    Measure.SILVER,
    Measure.BRONZE,
    Measure.ABOVE_MEDIAN,
    Measure.VALID,
    Measure.SUBMISSION,
)


@dataclass(frozen=True)
class Result:
    """What one seed of one competition came to; `earned` holds every measure that it counts for."""

    competition_id: str
    earned: frozenset[Measure] = frozenset()


@dataclass(frozen=True)
class Cell:
    """A percentage over seeds: mean, standard error of the mean, and how many seeds (None: not told)."""

    mean: float
    sem: float
    n: int | None

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean."""
        return self.mean - _Z_95 * self.sem, self.mean + _Z_95 * self.sem

    def __str__(self) -> str:
        """Write it as in the published table."""
        return f"{self.mean:.2f} ± {self.sem:.2f}"


@dataclass(frozen=True)
class Standing:
    """How a row stands on one split: its cell, or, where the split is not covered, how much of it is.

    Attributes:
        cell: percentage with any medal; None where it can't be told (yet).
        covered: how many of the split's competitions the row has runs of.
        of: how many competitions the split has.
        measures: the other percentages; empty where `cell` is None and for published rows.
    """

    cell: Cell | None
    covered: int
    of: int
    measures: Mapping[Measure, Cell] = field(default_factory=dict)

    @property
    def is_covered(self) -> bool:
        """Whether the row has runs of every competition of the split."""
        return self.covered == self.of


@dataclass(frozen=True)
class Row:
    """One row of the scoreboard, ours or published.

    Attributes:
        table: our own runs, reports that were imported, or one of the two published tables.
        name: the agent of a published row; the experiment, or the sweep without one, of our own.
        agent: the agent's id.
        columns: by column name (`COLUMNS`, then the names of user-made splits).
        own: over exactly the competitions that the row has runs of; None for published rows.
        seeds_done: seeds that every competition of the row has finished; None: not told.
        seeds_planned: seeds that were asked for; None: not told.
        running: some of its runs have not ended.
        padded: missing results were counted as no medal.
        rerolled: runs that were relaunched though the agent itself had failed.
        conflict: why its runs can't make one row; then it has no cells.
    """

    table: Table
    name: str
    agent: str
    llms: str
    columns: Mapping[str, Standing]
    own: Standing | None
    hours: float | None
    date: str
    edition: str
    seeds_done: int | None = None
    seeds_planned: int | None = None
    running: bool = False
    demo: bool = False
    padded: bool = False
    rerolled: int = 0
    source_available: bool | None = None
    reports_available: bool | None = None
    note: str = ""
    conflict: str = ""


@dataclass(frozen=True)
class Conditions:
    """What must be alike for runs to stand in one row; the names are those that a difference is told with.

    Attributes:
        hours: the time limit, as text.
        hardware: what a run was given: processors, memory, GPUs.
        data: `real` or `demo`.
    """

    edition: str
    agent: str = ""
    agent_version: str = ""
    hours: str = ""
    hardware: str = ""
    network: str = ""
    data: str = "real"


_ASPECTS = {
    "edition": "editions",
    "agent": "agents",
    "agent_version": "agent versions",
    "hours": "time limits",
    "hardware": "hardware",
    "network": "network policies",
    "data": "kinds of data",
}


def limit_text(hours: float) -> str:
    """A time limit as text, in minutes where it is below an hour."""
    return f"{hours:g} h" if hours >= 1 else f"{hours * 60:g} min"


def differences(conditions: Iterable[Conditions], *, apart_from: Sequence[str] = ()) -> tuple[str, ...]:
    """Say in what respects conditions differ, one sentence each; what is not known differs from nothing."""
    compared = tuple(conditions)
    found = []
    for name, plural in _ASPECTS.items():
        values = {str(getattr(one, name)) for one in compared} - {""}
        if len(values) > 1 and name not in apart_from:
            found.append(f"mixed {plural}: {', '.join(sorted(values))}")
    return tuple(found)


@dataclass(frozen=True)
class Trial:
    """One seed of one competition.

    Attributes:
        seed: the number it was given; which seed it counts as is a matter of order.
        earned: every measure it counts for; None when it counts for nothing: not ended, stopped by an
            operator, or lost for reasons that are not the agent's.
        ended: whether nothing more happens to it.
        seconds: how long the agent worked.
        failure: the class of its failure, empty where it did not fail.
        text: why there is no score, empty where there is one.
        decided_at: when that was known, in seconds since the epoch.
        run_id: our own run; None for what was imported.
    """

    competition_id: str
    seed: int
    earned: frozenset[Measure] | None
    ended: bool = True
    score: float | None = None
    seconds: float | None = None
    failure: str = ""
    text: str = ""
    rerolls: int = 0
    decided_at: float | None = None
    run_id: int | None = None

    def has(self, measure: Measure) -> bool:
        """Whether it counts for a measure."""
        return self.earned is not None and measure in self.earned


@dataclass(frozen=True)
class Evidence:
    """Everything behind one row.

    Attributes:
        trials: in the order in which they count as seeds.
        conditions: of the newest part, as the row shows them.
        conflict: in what respect its parts differ though they must not; then there are no numbers.
        planned_seeds: how many were asked for; None: not told.
        created_at: of the newest part, in seconds since the epoch.
        sweep_ids: the sweeps it is made of; empty for what was imported.
        gpus: how many GPUs one run had to itself, a part of one where runs share; None: not known.
    """

    table: Table
    name: str
    conditions: Conditions
    trials: tuple[Trial, ...]
    created_at: float
    limit_hours: float | None = None
    planned_seeds: int | None = None
    conflict: str = ""
    note: str = ""
    llms: str = ""
    sweep_ids: tuple[str, ...] = ()
    gpus: float | None = None

    @property
    def competitions(self) -> tuple[str, ...]:
        """The competitions that it has runs of."""
        return tuple(sorted({trial.competition_id for trial in self.trials}, key=str.lower))

    @property
    def running(self) -> bool:
        """Whether some of its runs have not ended."""
        return any(not trial.ended for trial in self.trials)

    @property
    def is_demo(self) -> bool:
        """Whether its data are made up."""
        return self.conditions.data == "demo"

    def results(self, *, pad_missing: bool) -> tuple[Result, ...]:
        """What its trials count for; with padding, an ended one that counts for nothing is no medal."""
        found = (result_of(trial, pad_missing=pad_missing) for trial in self.trials)
        return tuple(result for result in found if result is not None)


def result_of(trial: Trial, *, pad_missing: bool) -> Result | None:
    """What a trial counts for; None where it counts for nothing."""
    if trial.earned is not None:
        return Result(trial.competition_id, trial.earned)
    return Result(trial.competition_id) if pad_missing and trial.ended else None
