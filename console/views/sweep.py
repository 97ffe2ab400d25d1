"""A sweep: its competitions by split, their runs by seed, how the splits stand, and which runs a filter shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TypeVar

from competitions.model import Thresholds
from console.views.filters import Filter
from console.views.lists import SortOrder
from console.views.splits import ORDER, split_of, thresholds
from engine.scoreboard import Measure, aggregate
from engine.scoreboard.aggregation import complete_seeds
from engine.scoreboard.model import Cell
from engine.scoreboard.own_runs import trial_of
from state import datasets, runs, sweeps
from state.database import Database
from state.lifecycle import MEDALS, RunState
from state.records import Dataset, DatasetState, Run, Sweep, SweepCounts


@dataclass(frozen=True)
class BoardRow:
    """One competition with its runs, one place for each seed."""

    competition_id: str
    split: str
    runs: tuple[Run | None, ...]
    thresholds: Thresholds | None
    waits_for: str

    @property
    def medals(self) -> tuple[int, int]:
        """How many finished runs have a medal, and how many have finished."""
        finished = [run for run in self.runs if run is not None and run.outcome is not None]
        return sum(run.outcome in MEDALS for run in finished), len(finished)

    @property
    def best(self) -> float | None:
        """The best score among its runs, live ones included."""
        scores = [run.score for run in self.runs if run is not None and run.score is not None]
        if not scores or self.thresholds is None:
            return None
        return min(scores) if self.thresholds.is_lower_better else max(scores)


@dataclass(frozen=True)
class Group:
    """One split's competitions in the sweep and how they stand, over the seeds that all of them have."""

    split: str
    rows: tuple[BoardRow, ...]
    any_medal: Cell | None
    valid: Cell | None
    gold: Cell | None
    per_seed: tuple[float | None, ...]


@dataclass(frozen=True)
class SweepBoard:
    """Everything about one sweep, and the names of all of them."""

    sweep: Sweep
    counts: SweepCounts
    groups: tuple[Group, ...]
    any_medal: Cell | None
    all_sweeps: tuple[str, ...]
    runs: tuple[Run, ...]


def sweep_board(database: Database, sweep_id: str | None) -> SweepBoard | None:
    """Read a sweep; without an id the newest that has live runs or else the newest, None when there is none."""
    known = sweeps.all_sweeps(database)
    if not known:
        return None
    sweep = next((sweep for sweep in known if sweep.id == sweep_id), _foremost(database, known))
    found = runs.of_sweep(database, sweep.id)
    missing = _not_prepared(database, sweep.spec.edition)
    rows = _rows(sweep, found, missing)
    groups = tuple(
        _group(split, tuple(row for row in rows if row.split == split), sweep.spec.seeds)
        for split in ORDER
        if any(row.split == split for row in rows)
    )
    return SweepBoard(
        sweep=sweep,
        counts=sweeps.counts(database, sweep.id),
        groups=groups,
        any_medal=cells_over(found, sweep.spec.competitions).get(Measure.ANY_MEDAL),
        all_sweeps=tuple(each.id for each in known),
        runs=tuple(found),
    )


def _foremost(database: Database, known: Sequence[Sweep]) -> Sweep:
    live = runs.live_counts(database)
    return next((sweep for sweep in reversed(known) if sweep.id in live), known[-1])


def _not_prepared(database: Database, edition: str) -> dict[str, Dataset]:
    return {
        dataset.competition_id: dataset
        for dataset in datasets.all_datasets(database)
        if dataset.edition == edition and dataset.state is not DatasetState.PREPARED
    }


def _rows(sweep: Sweep, found: list[Run], missing: dict[str, Dataset]) -> list[BoardRow]:
    by_place = {(run.competition_id, run.seed): run for run in found}
    return [
        BoardRow(
            competition,
            split_of(competition),
            tuple(by_place.get((competition, seed)) for seed in range(1, sweep.spec.seeds + 1)),
            thresholds(competition),
            _waits_for(missing.get(competition)),
        )
        for competition in sweep.spec.competitions
    ]


def _waits_for(dataset: Dataset | None) -> str:
    if dataset is None:
        return ""
    # The datasets screen says why one waits; why one cannot be had is needed here.
    why = dataset.problem if dataset.state not in (DatasetState.WAITING, DatasetState.WORKING) else ""
    return f"data {dataset.state}: {why}" if why else f"data {dataset.state}"


def _group(split: str, rows: tuple[BoardRow, ...], seeds: int) -> Group:
    competitions = [row.competition_id for row in rows]
    found = [run for row in rows for run in row.runs if run is not None]
    cells = cells_over(found, competitions)
    return Group(
        split,
        rows,
        cells.get(Measure.ANY_MEDAL),
        cells.get(Measure.VALID),
        cells.get(Measure.GOLD),
        tuple(_of_seed(rows, place) for place in range(seeds)),
    )


def cells_over(found: Sequence[Run], competitions: Sequence[str]) -> dict[Measure, Cell]:
    """What the finished runs come to over the seeds that every competition has; empty before the first."""
    results = [result for run in found if (result := trial_of(run).result(pad_missing=False)) is not None]
    if not complete_seeds(results, competitions):
        return {}
    return dict(aggregate(results, competitions))


def _of_seed(rows: tuple[BoardRow, ...], place: int) -> float | None:
    seed = [row.runs[place] for row in rows]
    if any(run is None or run.outcome is None for run in seed):
        return None
    return 100.0 * sum(run is not None and run.outcome in MEDALS for run in seed) / len(seed)


def rows_of(board: SweepBoard) -> list[BoardRow]:
    """The competitions, split by split."""
    return [row for group in board.groups for row in group.rows]


def runs_of_row(row: BoardRow, chosen: Filter) -> list[Run]:
    """The runs of a competition that a filter lets through."""
    return [run for run in row.runs if run is not None and chosen.accepts(run, row.split)]


def runs_in_matrix(board: SweepBoard, chosen: Filter) -> list[Run]:
    """The runs that a filter lets through, in the order of the matrix."""
    return [run for row in rows_of(board) for run in runs_of_row(row, chosen)]


def runs_in_table(board: SweepBoard, chosen: Filter) -> list[Run]:
    """The runs that a filter lets through, in the order of the flat table."""
    splits = {row.competition_id: row.split for row in rows_of(board)}
    return [run for run in board.runs if chosen.accepts(run, splits[run.competition_id])]


def runs_between_in_matrix(board: SweepBoard, chosen: Filter, one: Run, other: Run) -> list[Run]:
    """The shown runs in the rectangle that two runs of the matrix span."""
    rows = [runs_of_row(row, chosen) for row in rows_of(board)]
    places = [place for place, row in enumerate(rows) if one in row or other in row]
    left, right = sorted((one.seed, other.seed))
    within = rows[min(places) : max(places) + 1]
    return [run for row in within for run in row if left <= run.seed <= right]


def runs_between_in_table(board: SweepBoard, chosen: Filter, one: Run, other: Run) -> list[Run]:
    """The shown runs from one run of the flat table to another."""
    found = runs_in_table(board, chosen)
    first, last = sorted((found.index(one), found.index(other)))
    return found[first : last + 1]


Thing = TypeVar("Thing")
_Rank = tuple[float | str, ...]
_By = Callable[[Thing], _Rank]


class RunOrder(StrEnum):
    """What comes first; the value is its name for people."""

    BENCHMARK = "the benchmark's order"
    NAME = "by name"
    NEED = "what needs you first"
    MEDALS = "most medals first"
    QUIET = "longest quiet first"

    def next(self) -> RunOrder:
        """The order after this one."""
        known = list(RunOrder)
        return known[(known.index(self) + 1) % len(known)]


BENCHMARK = SortOrder(RunOrder.BENCHMARK)


def order_name(sorting: SortOrder[RunOrder]) -> str:
    """An order's name for people."""
    return f"{sorting.by}, reversed" if sorting.reversed else f"{sorting.by}"


def ordered_board(board: SweepBoard, sorting: SortOrder[RunOrder]) -> SweepBoard:
    """The same board with its rows, within their splits, and its runs for the flat table, in an order."""
    key = _KEYS.get(sorting.by)
    groups = [
        replace(group, rows=_ordered(group.rows, key and partial(_first, key), reverse=sorting.reversed))
        for group in board.groups
    ]
    return replace(board, groups=tuple(groups), runs=_ordered(board.runs, key, reverse=sorting.reversed))


def _ordered(found: Sequence[Thing], key: _By[Thing] | None, *, reverse: bool) -> tuple[Thing, ...]:
    ordered = tuple(found) if key is None else tuple(sorted(found, key=key))
    return ordered[::-1] if reverse else ordered


def _first(key: _By[Run], row: BoardRow) -> _Rank:
    """A competition stands where its foremost run does."""
    return min(map(key, _runs(row)), default=())


def _runs(row: BoardRow) -> Sequence[Run]:
    return [run for run in row.runs if run is not None]


def _need(run: Run) -> tuple[float, ...]:
    if run.state is RunState.FAILED:
        rank = 0
    elif run.is_live:
        rank = 1 if run.valid is not True else 2
    else:
        rank = 3 if run.state is RunState.QUEUED else 4
    return rank, -(run.ended_at or 0.0), run.id


def _medals(run: Run) -> tuple[float, ...]:
    ranks = {"gold": 0, "silver": 1, "bronze": 2, "above_median": 3, "below_median": 4}
    return ranks.get(run.standing or "", 5), run.id


def _quiet(run: Run) -> tuple[float, ...]:
    return (0 if run.is_live else 1), run.last_activity_at or run.started_at or float("inf"), run.id


_KEYS: dict[RunOrder, _By[Run]] = {
    RunOrder.NAME: lambda run: (run.competition_id.lower(), run.seed),
    RunOrder.NEED: _need,
    RunOrder.MEDALS: _medals,
    RunOrder.QUIET: _quiet,
}
