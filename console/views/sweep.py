"""A sweep: its competitions by split with their runs by seed, the results by split, filters and sort orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from mlebench_console.competitions.model import Thresholds
from mlebench_console.console.lists import FilterTerm, SortOrder, parse_terms
from mlebench_console.console.nouns.competition import ORDER, split_of, thresholds
from mlebench_console.console.nouns.costs import SweepCosts, known_prices, read_sweep_costs, sweep_budgets
from mlebench_console.engine.needs.waits import job_wait
from mlebench_console.engine.runs.causes import CauseKind, cause_now, lasting_cause
from mlebench_console.engine.scoreboard import (
    Cell,
    Interim,
    Measure,
    Trial,
    aggregate,
    interim_of,
    results_of,
)
from mlebench_console.engine.scoreboard.aggregation import complete_seeds
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, end_of_sweep
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import datasets, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import MEDALS, FailureClass, Outcome, RunState
from mlebench_console.state.records import HERE, Attempt, Dataset, DatasetState, Run, Sweep, SweepCounts
from mlebench_console.state.usage import outages
from mlebench_console.state.usage.outages import ProviderOutage

Sorted = TypeVar("Sorted")
_Rank = tuple[float | str, ...]
_RankOf = Callable[[Sorted], _Rank]

FILTER_FIELDS = ("state", "class", "cause", "split", "seed", "outcome", "standing", "tag", "note")


class RunOrder(StrEnum):
    """The sort orders of competitions and runs; the value is the name shown."""

    BENCHMARK = "the benchmark's order"
    NAME = "by name"
    NEED = "what needs you first"
    MEDALS = "most medals first"
    QUIET = "longest idle first"

    def next(self) -> RunOrder:
        """Return the order after this one."""
        known = list(RunOrder)
        return known[(known.index(self) + 1) % len(known)]


BENCHMARK = SortOrder(RunOrder.BENCHMARK)
NEED = SortOrder(RunOrder.NEED)


@dataclass(frozen=True)
class RunFilter:
    """A filter of runs: `state:failed class:infra tag:night note:gpu` and free words; an empty one accepts all.

    `tag:` and `note:` without a value accept runs with any tag or note; `cause:` takes the key or words of a cause.

    Attributes:
        unknown: field names that don't exist; terms with them are ignored.
    """

    text: str = ""
    terms: tuple[FilterTerm, ...] = ()
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether it has any terms."""
        return bool(self.terms)

    def accepts(self, run: Run, split: str) -> bool:
        """Return whether a run of a competition in `split` passes: every term must match."""
        return all(_agrees(term, run, split) is not term.is_negated for term in self.terms)


@dataclass(frozen=True)
class CompetitionRow:
    """One competition with its runs, one entry for each seed."""

    competition_id: str
    split: str
    runs: tuple[Run | None, ...]
    thresholds: Thresholds | None
    waits_for: str

    @property
    def medals(self) -> tuple[int, int]:
        """The number of runs with a medal, and of those that have ended, as in the results of the split."""
        ended = [trial for run in self.runs if run is not None and (trial := trial_of(run)).ended]
        return sum(trial.has(Measure.ANY_MEDAL) for trial in ended), len(ended)

    @property
    def best(self) -> float | None:
        """The best score among its runs, including live ones."""
        scores = [run.score for run in self.runs if run is not None and run.score is not None]
        if not scores or self.thresholds is None:
            return None
        return min(scores) if self.thresholds.is_lower_better else max(scores)

    def shown(self, chosen: RunFilter) -> list[Run]:
        """Return its runs that pass a filter."""
        return [run for run in self.runs if run is not None and chosen.accepts(run, self.split)]


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
        interim: the progress of its runs.
        ends: the expected end of its last run; None if unknown.
        costs: those of its model calls; None if no gateway counts them.
        outages: current outages of the providers that it uses.
        elsewhere: the attempts of its live runs that were given to a batch system, by run.
    """

    sweep: Sweep
    counts: SweepCounts
    groups: tuple[SplitGroup, ...]
    any_medal: Cell | None
    interim: Interim | None
    ends: ExpectedEnd | None
    all_sweeps: tuple[str, ...]
    runs: tuple[Run, ...]
    costs: SweepCosts | None = None
    outages: tuple[ProviderOutage, ...] = ()
    elsewhere: Mapping[int, Attempt] = field(default_factory=dict)

    @cached_property
    def live(self) -> tuple[Run, ...]:
        """Its live runs."""
        return tuple(run for run in self.runs if run.is_live)

    @property
    def rows(self) -> list[CompetitionRow]:
        """The competitions, split by split."""
        return [row for group in self.groups for row in group.rows]

    def in_matrix(self, chosen: RunFilter) -> list[Run]:
        """Return the runs that pass a filter, in the order of the matrix."""
        return [run for row in self.rows for run in row.shown(chosen)]

    def in_table(self, chosen: RunFilter) -> list[Run]:
        """Return the runs that pass a filter, in the order of the flat table."""
        splits = {row.competition_id: row.split for row in self.rows}
        return [run for run in self.runs if chosen.accepts(run, splits[run.competition_id])]

    def needs_somebody(self, run: Run, now: float) -> bool:
        """Return whether a run has failed, is late or idle, can't be graded, or waits in a queue for a person."""
        attempt = self.elsewhere.get(run.id)
        wait = None if attempt is None or not run.is_live else job_wait(attempt)
        if wait is not None and wait.needs_person:
            return True
        return cause_now(run, self.sweep.spec.time_limit_seconds, now) is not None

    def between_in_matrix(self, chosen: RunFilter, one: Run, other: Run) -> list[Run]:
        """Return the shown runs in the rectangle between two runs of the matrix."""
        rows = [row.shown(chosen) for row in self.rows]
        places = [place for place, row in enumerate(rows) if one in row or other in row]
        left, right = sorted((one.seed, other.seed))
        within = rows[min(places) : max(places) + 1]
        return [run for row in within for run in row if left <= run.seed <= right]

    def between_in_table(self, chosen: RunFilter, one: Run, other: Run) -> list[Run]:
        """Return the shown runs from one run of the flat table to another."""
        found = self.in_table(chosen)
        first, last = sorted((found.index(one), found.index(other)))
        return found[first : last + 1]


# Outcomes and states in the order in which bars and counts show them.
TALLIED: tuple[Outcome | RunState, ...] = (
    *Outcome,
    RunState.FAILED,
    RunState.STOPPED,
    RunState.RUNNING,
    RunState.QUEUED,
)


def tally_of(found: Sequence[Run], waiting: Container[int] = ()) -> dict[Outcome | RunState, int]:
    """Count runs by outcome or state, in the order of `TALLIED`; all live runs count as running.

    Live runs whose ids are in `waiting`, since they wait in a batch system's queue, count as queued.
    """

    def standing(run: Run) -> Outcome | RunState:
        if run.is_live:
            return RunState.QUEUED if run.id in waiting else RunState.RUNNING
        return run.outcome if run.outcome is not None else run.state

    counts = Counter(map(standing, found))
    return {kind: counts[kind] for kind in TALLIED if counts[kind]}


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
    rows = _rows(sweep, found, _not_prepared(database, sweep.spec.edition))
    groups = tuple(
        _group(split, tuple(row for row in rows if row.split == split), sweep.spec.seeds)
        for split in ORDER
        if any(row.split == split for row in rows)
    )
    counts = sweeps.counts(database, sweep.id)
    trials = [trial_of(run) for run in found]
    prices = known_prices(config_file)
    return SweepBoard(
        sweep=sweep,
        counts=counts,
        groups=groups,
        any_medal=any_medal_of(trials, sweep.spec.competitions),
        interim=interim_of(trials, sweep.spec.competitions),
        ends=end_of_sweep(database, sweep, found, now),
        all_sweeps=tuple(each.id for each in known),
        runs=tuple(found),
        costs=read_sweep_costs(database, sweep, found, prices, counts.medals, sweep_budgets(database)),
        outages=tuple(one for one in outages.current(database) if one.provider in sweep.spec.gateway),
        elsewhere={} if sweep.spec.placement == HERE else runs.placed_elsewhere(database, sweep.id),
    )


def any_medal_of(trials: Sequence[Trial], competitions: Sequence[str]) -> Cell | None:
    """Return the medal rate over the seeds that every competition has finished; None before the first."""
    results = results_of((trial.competition_id, trial.earned) for trial in trials)
    if not complete_seeds(results, competitions):
        return None
    return aggregate(results, competitions).get(Measure.ANY_MEDAL)


def parse_filter(text: str) -> RunFilter:
    """Parse a filter of runs as typed."""
    return RunFilter(text, *parse_terms(text, FILTER_FIELDS))


def checked_filter(text: str) -> RunFilter:
    """Parse a filter of runs, and refuse unknown fields.

    Raises:
        UsageProblem: it names a field that runs don't have.
    """
    found = parse_filter(text)
    if found.unknown:
        known = ", ".join(f"{name}:" for name in FILTER_FIELDS)
        raise UsageProblem(f"runs can't be filtered by '{found.unknown[0]}:'", "", f"Choose one of {known}.")
    return found


def filter_words(known: Iterable[Run], named: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the words that a filter of these runs may have, named filters first, each with what it lets through."""
    yield from named.items()
    values: dict[str, Iterable[str]] = {
        "state": (*RunState, "live"),
        "class": FailureClass,
        "outcome": (*(outcome.replace("_", " ").split()[0] for outcome in Outcome), "medal"),
        "tag": (tag.name for run in known for tag in run.tags),
        "split": ("low", "medium", "high"),
    }
    causes = dict(map(lasting_cause, known))
    for name in FILTER_FIELDS:
        if name == "cause":
            yield from ((f"cause:{key}", text) for key, text in causes.items() if key)
            continue
        for value in dict.fromkeys(values.get(name, ())):
            yield f"{name}:{value}", f"runs whose {name} is {value}"
        if name not in values:
            yield f"{name}:", f"runs by their {name}"


def order_name(sorting: SortOrder[RunOrder]) -> str:
    """Return the name of an order as shown."""
    return f"{sorting.by}, reversed" if sorting.reversed else f"{sorting.by}"


def ordered_board(board: SweepBoard, sorting: SortOrder[RunOrder], now: float) -> SweepBoard:
    """Return the board with its rows (within splits) and the runs of the flat table sorted."""
    rank = _RANKS.get(sorting.by)
    if sorting.by is RunOrder.NEED:
        rank = partial(_need, board, now)
    rank_of_row = None if rank is None else partial(_foremost_rank, rank)
    groups = tuple(replace(group, rows=_ordered(group.rows, rank_of_row, sorting)) for group in board.groups)
    return replace(board, groups=groups, runs=_ordered(board.runs, rank, sorting))


def _agrees(term: FilterTerm, run: Run, split: str) -> bool:
    wanted = term.value
    if term.field == "":
        tags = " ".join(tag.name for tag in run.tags)
        return (
            wanted in f"{run.competition_id} {run.failure_text} {run.outcome or ''} {tags} {run.note}".lower()
        )
    if term.field == "tag":
        return any(wanted in ("", tag.name) for tag in run.tags)
    if term.field == "note":
        return bool(run.note) and wanted in run.note.lower()
    if term.field == "cause":
        key, cause = lasting_cause(run)
        return bool(key) and (key.startswith(wanted) or wanted in cause.lower())
    if term.field == "seed":
        return wanted == str(run.seed)
    if term.field == "split":
        return split.startswith(wanted)
    if term.field == "state":
        return run.state.startswith(wanted) or (wanted == "live" and run.is_live)
    found = {"class": run.failure_class, "outcome": run.outcome, "standing": run.standing}[term.field]
    text = "" if found is None else found.replace("_", " ")
    return bool(wanted) and (text.startswith(wanted) or (wanted == "medal" and found in MEDALS))


def _foremost(database: Database, known: Sequence[Sweep]) -> Sweep:
    live = runs.live_counts(database)
    return next((sweep for sweep in known if sweep.id in live), known[0])


def _not_prepared(database: Database, edition: str) -> dict[str, Dataset]:
    return {
        dataset.competition_id: dataset
        for dataset in datasets.all_datasets(database)
        if dataset.edition == edition and dataset.state is not DatasetState.PREPARED
    }


def _rows(sweep: Sweep, found: list[Run], missing: dict[str, Dataset]) -> list[CompetitionRow]:
    by_place = {(run.competition_id, run.seed): run for run in found}
    return [
        CompetitionRow(
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
    # Reasons for waiting are on the datasets screen; only problems are shown here.
    why = "" if dataset.state.is_busy else dataset.problem
    return f"data {dataset.state}: {why}" if why else f"data {dataset.state}"


def _group(split: str, rows: tuple[CompetitionRow, ...], seeds: int) -> SplitGroup:
    trials = [[None if run is None else trial_of(run) for run in row.runs] for row in rows]
    found = [trial for row in trials for trial in row if trial is not None]
    members = [row.competition_id for row in rows]
    per_seed = tuple(
        interim_of((trial for row in trials if (trial := row[place]) is not None), members)
        for place in range(seeds)
    )
    return SplitGroup(split, rows, any_medal_of(found, members), interim_of(found, members), per_seed)


def _ordered(
    found: Sequence[Sorted], rank: _RankOf[Sorted] | None, sorting: SortOrder[RunOrder]
) -> tuple[Sorted, ...]:
    ordered = tuple(found) if rank is None else tuple(sorted(found, key=rank))
    return ordered[::-1] if sorting.reversed else ordered


def _foremost_rank(rank: _RankOf[Run], row: CompetitionRow) -> _Rank:
    """Return the rank of a competition: that of its first run."""
    return min((rank(run) for run in row.runs if run is not None), default=())


def _need(board: SweepBoard, now: float, run: Run) -> _Rank:
    """Rank what needs a person first, by urgency as Overview does, then live runs, queued ones, ended ones."""
    trouble = cause_now(run, board.sweep.spec.time_limit_seconds, now)
    if trouble is not None:
        kind, _text, since = trouble
        return 0, _URGENCY[kind], -since, run.id
    if board.needs_somebody(run, now):
        return 0, _URGENCY[CauseKind.IDLE], 0.0, run.id
    if run.is_live:
        return 1, run.valid is True, 0.0, run.id
    return (2 if run.state is RunState.QUEUED else 3), 0, -(run.ended_at or 0.0), run.id


def _medals(run: Run) -> _Rank:
    ranks = {"gold": 0, "silver": 1, "bronze": 2, "above_median": 3, "below_median": 4}
    return ranks.get(run.standing or "", 5), run.id


def _quiet(run: Run) -> _Rank:
    return (0 if run.is_live else 1), run.last_activity_at or run.started_at or float("inf"), run.id


_URGENCY = {kind: place for place, kind in enumerate(CauseKind)}
_RANKS: dict[RunOrder, _RankOf[Run]] = {
    RunOrder.NAME: lambda run: (run.competition_id.lower(), run.seed),
    RunOrder.MEDALS: _medals,
    RunOrder.QUIET: _quiet,
}
