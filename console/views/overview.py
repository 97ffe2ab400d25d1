"""The overview: the progress of each sweep, runs that may need a person, and recent events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from console import wording
from console.views.calls import MOST_OF_BUDGET, SweepCosts, known_prices, read_sweep_costs, sweep_budgets
from console.views.sweep import any_medal_of, listed_sweeps, tally_of
from engine.notifications.news import in_common
from engine.runs.budgets import BudgetStanding
from engine.runs.causes import CauseGroup, group_by_cause, retried
from engine.scoreboard import Cell, Interim, interim_of
from engine.scoreboard.own_runs import trial_of
from engine.scoreboard.timeline import ExpectedEnd, end_of_sweep
from state import acknowledgements, datasets, events, runs, sweeps
from state.database import Database
from state.lifecycle import Outcome, RunState, SweepState
from state.records import (
    Acknowledgement,
    Attempt,
    Dataset,
    DatasetState,
    Event,
    KaggleState,
    Run,
    Sweep,
    SweepCounts,
)
from state.usage import outages
from state.usage.outages import ProviderOutage

_EVENTS_SHOWN = 60


@dataclass(frozen=True)
class SweepLine:
    """One sweep in a line.

    Attributes:
        any_medal: the medal rate over the seeds that every competition has finished.
        interim: the progress of its runs, and the bounds of the medal rate so far.
        tally: the number of runs by outcome or state.
        ends: the expected end of its last run; None if unknown.
        costs: those of its model calls; None if no gateway counts them.
    """

    sweep: Sweep
    counts: SweepCounts
    any_medal: Cell | None
    interim: Interim | None
    tally: Mapping[Outcome | RunState, int]
    ends: ExpectedEnd | None
    costs: SweepCosts | None = None

    @property
    def ended(self) -> int:
        """The number of its runs that have ended."""
        return self.counts.finished + self.counts.failed + self.counts.stopped

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens in it without a person's action."""
        return not self.counts.live and (not self.counts.queued or self.sweep.state is SweepState.STOPPED)


@dataclass(frozen=True)
class Happening:
    """A recent event of one run, or consecutive similar events of several.

    Attributes:
        event: the newest event.
        text: the common text of the events.
        count: the number of events.
    """

    event: Event
    text: str
    count: int


@dataclass(frozen=True)
class Overview:
    """The data of the overview; `console.views.concerns` derives from it what needs a person at a given time.

    Attributes:
        causes: runs that have failed or can't be graded, by cause.
        running: all live runs.
        limits: the time limit of the runs of each sweep.
        acknowledged: acknowledgements by the keys of their concerns.
        held: attempts that a batch system won't run until a person acts, each with its sweep.
    """

    sweeps: tuple[SweepLine, ...]
    causes: tuple[CauseGroup, ...]
    running: tuple[Run, ...]
    limits: dict[str, float]
    acknowledged: dict[str, Acknowledgement]
    events: tuple[Happening, ...]
    datasets_failed: tuple[Dataset, ...]
    run_of: dict[int, Run]
    kaggle: KaggleState = field(default_factory=KaggleState)
    outages: tuple[ProviderOutage, ...] = ()
    budgets: tuple[BudgetStanding, ...] = ()
    held: tuple[tuple[str, Attempt], ...] = ()

    @property
    def tight_budgets(self) -> tuple[BudgetStanding, ...]:
        """The shared budgets that are nearly used up, or that let no more runs start."""
        return tuple(one for one in self.budgets if one.share >= MOST_OF_BUDGET or not one.has_room)


def overview(database: Database, config_file: Path, now: float) -> Overview:
    """Read the overview; model calls are priced by config.toml."""
    by_sweep: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs.of_all_sweeps(database):
        by_sweep[run.sweep_id].append(run)
    known = listed_sweeps(database)
    counts = sweeps.counts_of_all(database)
    prices = known_prices(config_file)
    shared = sweep_budgets(database)
    standings = {(one.budget.scope, one.budget.name): one for found in shared.values() for one in found}
    every = [run for found in by_sweep.values() for run in found]
    by_id = {run.id: run for run in every}
    happened = [event for event in events.newest(database, limit=8 * _EVENTS_SHOWN) if _is_news(event, by_id)]
    # The order of writing is not the order of happening: runners may report events much later.
    happened.sort(key=lambda event: (event.at, event.id), reverse=True)
    limits = {sweep.id: sweep.spec.time_limit_seconds for sweep in known}
    acknowledged = acknowledgements.all_acknowledgements(database)
    # Grouped here, in the reader's thread: unlike live runs, ended ones don't depend on the time.
    ended = (run for run in every if run.state is RunState.FAILED or run.grading_problem)
    elsewhere = runs.placed_elsewhere(database)
    waiting = _waiting(elsewhere)
    return Overview(
        sweeps=tuple(
            _sweep_line(
                sweep,
                by_sweep[sweep.id],
                counts.get(sweep.id, SweepCounts()),
                read_sweep_costs(
                    database,
                    sweep,
                    by_sweep[sweep.id],
                    prices,
                    counts.get(sweep.id, SweepCounts()).medals,
                    shared,
                ),
                now,
                waiting,
            )
            for sweep in known
        ),
        causes=group_by_cause(ended, limits, acknowledged, 0.0, retried(database)),
        running=tuple(run for run in every if run.state is RunState.RUNNING and not run.grading_problem),
        limits=limits,
        acknowledged=acknowledged,
        events=tuple(_together(happened))[:_EVENTS_SHOWN],
        datasets_failed=tuple(
            each for state in _NOT_TO_BE_HAD for each in datasets.in_state(database, state)
        ),
        run_of={event.run_id: by_id[event.run_id] for event in happened if event.run_id in by_id},
        kaggle=datasets.kaggle(database),
        outages=tuple(outages.current(database)),
        budgets=tuple(standings.values()),
        held=tuple(
            (by_id[run_id].sweep_id, attempt)
            for run_id, attempt in elsewhere.items()
            if wording.is_waiting(attempt) and wording.waits_for_people(attempt)
        ),
    )


def sweep_lines(database: Database, chosen: Sequence[Sweep], now: float) -> list[SweepLine]:
    """Read the progress of some sweeps, without the costs of their model calls."""
    counts = sweeps.counts_of_all(database)
    waiting = _waiting(runs.placed_elsewhere(database))
    return [
        _sweep_line(
            sweep, runs.of_sweep(database, sweep.id), counts.get(sweep.id, SweepCounts()), None, now, waiting
        )
        for sweep in chosen
    ]


def _waiting(elsewhere: Mapping[int, Attempt]) -> set[int]:
    """Return the ids of the runs that wait in a batch system's queue."""
    return {run_id for run_id, attempt in elsewhere.items() if wording.waits_in_queue(attempt)}


def _sweep_line(
    sweep: Sweep,
    found: Sequence[Run],
    counts: SweepCounts,
    costs: SweepCosts | None,
    now: float,
    waiting: Container[int],
) -> SweepLine:
    competitions, trials = sweep.spec.competitions, [trial_of(run) for run in found]
    return SweepLine(
        sweep,
        counts,
        any_medal_of(trials, competitions),
        interim_of(trials, competitions),
        tally_of(found, waiting),
        end_of_sweep(sweep, found, now),
        costs,
    )


_NOT_TO_BE_HAD = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)
_NEWS = frozenset(
    {
        "run.finished",
        "run.failed",
        "run.stopped",
        "run.queued",
        "grading.failed",
        "grading.works",
        "dataset.prepared",
        *(f"dataset.{state}" for state in _NOT_TO_BE_HAD),
    }
)


def _together(happened: Iterable[Event]) -> Iterator[Happening]:
    """Group consecutive events: failures with the same cause, and runs queued or stopped by one request."""
    for _what, alike in groupby(happened, key=_what_happened):
        found = list(alike)
        text = found[0].text if len(found) == 1 else in_common(found)
        yield Happening(found[0], text, len(found))


def _what_happened(event: Event) -> tuple[object, ...]:
    if event.kind == "run.failed" and "cause" in event.detail:
        return event.kind, event.detail["cause"]
    if event.kind in ("run.queued", "run.stopped"):
        return event.kind, event.sweep_id, event.text
    return (event.id,)


def _is_news(event: Event, by_id: Mapping[int, Run]) -> bool:
    if event.kind == "submission.graded":
        # For an ended run, the event of its end contains the same.
        run = by_id.get(event.run_id or 0)
        return run is not None and not run.has_ended
    return event.kind in _NEWS or event.kind.startswith(("sweep.", "engine."))
