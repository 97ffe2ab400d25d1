"""What a scoreboard consists of, as frozen dataclasses; how the numbers come about is in `aggregation`."""

from __future__ import annotations

from collections.abc import Mapping
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
