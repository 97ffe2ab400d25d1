"""A sweep: its competitions by split with their runs by seed, and the results by split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mlebench_console.competitions.medals import Thresholds
from mlebench_console.console.fields import Order
from mlebench_console.console.lists import SortOrder
from mlebench_console.console.nouns.competition import ORDER, split_of, thresholds
from mlebench_console.console.nouns.costs import SweepCosts, known_prices, read_sweep_costs, sweep_budgets
from mlebench_console.console.nouns.run import RUN, RunRow, run_rows
from mlebench_console.console.roles import Drawing
from mlebench_console.engine.needs.standing import SweepStanding, any_medal_of, read_standings
from mlebench_console.engine.needs.waits import Wait, dataset_wait
from mlebench_console.engine.scoreboard.aggregation import interim_of
from mlebench_console.engine.scoreboard.model import Cell, Interim, Measure
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.foundation.conditions import HERE
from mlebench_console.state import datasets, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Sweep
from mlebench_console.state.usage import outages
from mlebench_console.state.usage.outages import ProviderOutage


@dataclass(frozen=True)
class CompetitionRow:
    """One competition of a sweep with its runs, one entry for each seed.

    Attributes:
        data: why its runs can't start for want of its dataset; None if they can.
    """

    competition_id: str
    split: str
    runs: tuple[RunRow | None, ...]
    cuts: Thresholds | None
    data: Wait | None

    @property
    def medals(self) -> tuple[int, int]:
        """The number of runs with a medal, and of those that have ended, as in the results of the split."""
        ended = [trial for row in self.runs if row is not None and (trial := trial_of(row.run)).ended]
        return sum(trial.has(Measure.ANY_MEDAL) for trial in ended), len(ended)

    @property
    def best(self) -> float | None:
        """The best score among its runs, including live ones."""
        scores = [row.run.score for row in self.runs if row is not None and row.run.score is not None]
        if not scores or self.cuts is None:
            return None
        return min(scores) if self.cuts.is_lower_better else max(scores)


@dataclass(frozen=True)
class SplitGroup:
    """The sweep's competitions of one split, and their results.

    Attributes:
        any_medal: the medal rate over the seeds that all of them have finished.
        interim: the progress and bounds before that.
        per_seed: the same for each seed alone.
    """

    split: str
    rows: tuple[CompetitionRow, ...]
    any_medal: Cell | None
    interim: Interim | None
    per_seed: tuple[Interim | None, ...]


@dataclass(frozen=True)
class SweepBoard:
    """All data about one sweep, and the names of all sweeps, newest first.

    Attributes:
        costs: those of its model calls; None if no gateway counts them.
        outages: current outages of the providers that it uses.
    """

    standing: SweepStanding
    groups: tuple[SplitGroup, ...]
    all_sweeps: tuple[str, ...]
    runs: tuple[RunRow, ...]
    costs: SweepCosts | None = None
    outages: tuple[ProviderOutage, ...] = ()

    @property
    def sweep(self) -> Sweep:
        """The sweep."""
        return self.standing.sweep

    @cached_property
    def live(self) -> tuple[RunRow, ...]:
        """Its live runs."""
        return tuple(row for row in self.runs if row.run.is_live)

    @property
    def is_elsewhere(self) -> bool:
        """Whether a batch system has any of its live runs."""
        return any(row.attempt is not None for row in self.live)

    @property
    def rows(self) -> list[CompetitionRow]:
        """The competitions, split by split."""
        return [row for group in self.groups for row in group.rows]

    def ordered(self, sorting: SortOrder[str], drawing: Drawing) -> SweepBoard:
        """Return it with its competitions (within splits, by the first of their runs) and its runs sorted."""
        rank, turned = first_of(RUN.order(sorting.by)).rank, sorting.reversed
        groups = tuple(
            replace(
                group,
                rows=tuple(sorted(group.rows, key=lambda row: rank(row, drawing), reverse=turned)),
            )
            for group in self.groups
        )
        return replace(self, groups=groups, runs=tuple(RUN.ordered(self.runs, sorting, drawing)))


def first_of(order: Order[RunRow]) -> Order[CompetitionRow]:
    """Return the order of competitions by the first of their runs in an order."""

    def rank(row: CompetitionRow, drawing: Drawing) -> Any:
        return min((order.rank(each, drawing) for each in row.runs if each is not None), default=())

    return Order(order.words, rank)


def listed_sweeps(database: Database) -> list[Sweep]:
    """Read all sweeps, newest first: the order of all lists of sweeps and of the keys `[` and `]`."""
    return sweeps.all_sweeps(database)[::-1]


def sweep_board(database: Database, sweep_id: str | None, config_file: Path, now: float) -> SweepBoard | None:
    """Read a sweep; without an id the newest with live runs, else the newest; None if there is none."""
    known = listed_sweeps(database)
    if not known:
        return None
    sweep = next((sweep for sweep in known if sweep.id == sweep_id), _foremost(database, known))
    found = runs.of_sweep(database, sweep.id)
    missing = _not_prepared(database, sweep.conditions.edition)
    elsewhere = {} if sweep.conditions.placement == HERE else runs.placed_elsewhere(database, sweep.id)
    listed = [
        replace(row, data=missing.get(row.run.competition_id))
        for row in run_rows(found, {sweep.id: sweep.conditions.time_limit_seconds}, elsewhere)
    ]
    rows = _rows(sweep, listed)
    groups = tuple(
        _group(split, tuple(row for row in rows if row.split == split), sweep.spec.seeds)
        for split in ORDER
        if any(row.split == split for row in rows)
    )
    (standing,) = read_standings(database, [sweep], now, {sweep.id: found})
    medals = standing.counts.medals
    prices = known_prices(config_file)
    return SweepBoard(
        standing=standing,
        groups=groups,
        all_sweeps=tuple(each.id for each in known),
        runs=tuple(listed),
        costs=read_sweep_costs(database, sweep, found, prices, medals, sweep_budgets(database)),
        outages=tuple(
            one for one in outages.current(database) if one.provider in sweep.conditions.models.gateway
        ),
    )


def _foremost(database: Database, known: Sequence[Sweep]) -> Sweep:
    live = runs.live_counts(database)
    return next((sweep for sweep in known if sweep.id in live), known[0])


def _not_prepared(database: Database, edition: str) -> dict[str, Wait]:
    """Return why runs wait for each dataset of an edition that was requested and is not prepared."""
    return {
        dataset.competition_id: wait
        for dataset in datasets.all_datasets(database)
        if dataset.edition == edition and (wait := dataset_wait(dataset)) is not None
    }


def _rows(sweep: Sweep, found: Sequence[RunRow]) -> list[CompetitionRow]:
    by_place = {(row.run.competition_id, row.run.seed): row for row in found}
    rows = []
    for competition_id in sweep.spec.competitions:
        seeds = tuple(by_place.get((competition_id, seed)) for seed in range(1, sweep.spec.seeds + 1))
        data = next((row.data for row in seeds if row is not None), None)
        rows.append(
            CompetitionRow(competition_id, split_of(competition_id), seeds, thresholds(competition_id), data)
        )
    return rows


def _group(split: str, rows: tuple[CompetitionRow, ...], seeds: int) -> SplitGroup:
    trials = [[None if each is None else trial_of(each.run) for each in row.runs] for row in rows]
    found = [trial for row in trials for trial in row if trial is not None]
    members = [row.competition_id for row in rows]
    per_seed = tuple(
        interim_of((trial for row in trials if (trial := row[place]) is not None), members)
        for place in range(seeds)
    )
    return SplitGroup(split, rows, any_medal_of(found, members), interim_of(found, members), per_seed)
