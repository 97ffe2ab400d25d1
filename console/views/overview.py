"""The overview: the progress of each sweep, runs that may need a person, and recent events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.nouns.costs import SweepCosts, known_prices, read_sweep_costs, sweep_budgets
from mlebench_console.console.views.concerns import NOT_TO_BE_HAD, Troubles, read_troubles
from mlebench_console.console.views.events import (
    FEWEST_EQUAL,
    OF_ONE_TIME,
    RESULTS,
    ListedEvent,
    what_happened,
)
from mlebench_console.console.views.sweep import any_medal_of, listed_sweeps, tally_of
from mlebench_console.engine.needs.waits import QueuedRun, WaitKind, read_queued_run
from mlebench_console.engine.notifications.news import in_common
from mlebench_console.engine.scoreboard import Cell, Interim, interim_of
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, end_of_sweep
from mlebench_console.state import datasets, events, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome, RunState, SweepState
from mlebench_console.state.records import Attempt, DatasetState, Event, Run, Sweep, SweepCounts

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus

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
        next: its next queued run; None if none is queued.
    """

    sweep: Sweep
    counts: SweepCounts
    any_medal: Cell | None
    interim: Interim | None
    tally: Mapping[Outcome | RunState, int]
    ends: ExpectedEnd | None
    costs: SweepCosts | None = None
    next: QueuedRun | None = None

    @property
    def ended(self) -> int:
        """The number of its runs that have ended."""
        return self.counts.finished + self.counts.failed + self.counts.stopped

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens in it without a person's action."""
        return not self.counts.live and (not self.counts.queued or self.sweep.state is SweepState.STOPPED)

    def waits_for(self, engine: EngineStatus | None) -> str:
        """Return why none of its queued runs starts; empty if none is queued, or if the next one starts in a moment."""
        waits = [] if self.next is None else self.next.waits(engine)
        # Of several that could start the order decides, which holds up none of them.
        waits = [wait for wait in waits if wait.kind is not WaitKind.ORDER]
        return f"wait: {waits[0].text}" if waits else ""


@dataclass(frozen=True)
class Happening:
    """A recent event of one run, or equal events of several.

    Attributes:
        events: the newest one first.
        text: the common text of the events.
    """

    events: tuple[Event, ...]
    text: str

    @property
    def event(self) -> Event:
        """The newest event."""
        return self.events[0]

    @property
    def count(self) -> int:
        """The number of events."""
        return len(self.events)


@dataclass(frozen=True)
class Overview:
    """The data of the overview.

    Attributes:
        troubles: what may need a person.
        run_of: the runs of the events, by their numbers.
    """

    sweeps: tuple[SweepLine, ...]
    troubles: Troubles
    events: tuple[Happening, ...]
    run_of: dict[int, Run]


def overview(database: Database, config_file: Path, now: float) -> Overview:
    """Read the overview; model calls are priced by config.toml."""
    by_sweep: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs.of_all_sweeps(database):
        by_sweep[run.sweep_id].append(run)
    known = listed_sweeps(database)
    counts = sweeps.counts_of_all(database)
    prices = known_prices(config_file)
    shared = sweep_budgets(database)
    every = [run for found in by_sweep.values() for run in found]
    by_id = {run.id: run for run in every}
    happened = [event for event in events.newest(database, limit=8 * _EVENTS_SHOWN) if _is_news(event, by_id)]
    # The order of writing is not the order of happening: runners may report events much later.
    happened.sort(key=lambda event: (event.at, event.id), reverse=True)
    waiting = _waiting(runs.placed_elsewhere(database))
    prepared = _prepared(database)
    return Overview(
        sweeps=tuple(
            _sweep_line(
                database,
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
                prepared,
            )
            for sweep in known
        ),
        troubles=read_troubles(database),
        events=tuple(_together(happened))[:_EVENTS_SHOWN],
        run_of={event.run_id: by_id[event.run_id] for event in happened if event.run_id in by_id},
    )


def sweep_lines(database: Database, chosen: Sequence[Sweep], now: float) -> list[SweepLine]:
    """Read the progress of some sweeps, without the costs of their model calls."""
    counts = sweeps.counts_of_all(database)
    waiting, prepared = _waiting(runs.placed_elsewhere(database)), _prepared(database)
    return [
        _sweep_line(
            database,
            sweep,
            runs.of_sweep(database, sweep.id),
            counts.get(sweep.id, SweepCounts()),
            None,
            now,
            waiting,
            prepared,
        )
        for sweep in chosen
    ]


def _waiting(elsewhere: Mapping[int, Attempt]) -> set[int]:
    """Return the ids of the runs that wait in a batch system's queue."""
    return {run_id for run_id, attempt in elsewhere.items() if attempt.is_in_queue}


def _prepared(database: Database) -> set[tuple[str, str]]:
    """Return the competitions and editions whose data are prepared."""
    found = datasets.in_state(database, DatasetState.PREPARED)
    return {(one.competition_id, one.edition) for one in found}


def _sweep_line(
    database: Database,
    sweep: Sweep,
    found: Sequence[Run],
    counts: SweepCounts,
    costs: SweepCosts | None,
    now: float,
    waiting: Container[int],
    prepared: Container[tuple[str, str]],
) -> SweepLine:
    competitions, trials = sweep.spec.competitions, [trial_of(run) for run in found]
    queued = sorted(
        (run for run in found if run.state is RunState.QUEUED),
        # Runs whose data are missing let others go first.
        key=lambda run: ((run.competition_id, sweep.spec.edition) not in prepared, run.position),
    )
    return SweepLine(
        sweep,
        counts,
        any_medal_of(trials, competitions),
        interim_of(trials, competitions),
        tally_of(found, waiting),
        end_of_sweep(database, sweep, found, now),
        costs,
        read_queued_run(database, queued[0], sweep, now, found) if queued else None,
    )


_NEWS = frozenset(
    {
        "run.finished",
        "run.failed",
        "run.stopped",
        "run.queued",
        "grading.failed",
        "grading.works",
        "dataset.prepared",
        *(f"dataset.{state}" for state in NOT_TO_BE_HAD),
    }
)


def _together(happened: Iterable[Event]) -> Iterator[Happening]:
    """Group equal events of about one time, newest first: of one cause, one request or one outcome.

    Failures are grouped by their cause also if other events came between them, as in an outage; others are not.
    """
    groups: list[list[Event]] = []
    open_groups: dict[tuple[object, ...], list[Event]] = {}
    for event in happened:
        what = what_happened(event)
        group = open_groups.get(what)
        of_cause = event.kind == "run.failed"
        if group is None or group[-1].at - event.at > OF_ONE_TIME or not (of_cause or group is groups[-1]):
            open_groups[what] = group = []
            groups.append(group)
        group.append(event)
    for group in groups:
        if len(group) >= FEWEST_EQUAL or group[0].kind not in RESULTS:
            yield _happening(*group)
        else:
            yield from map(_happening, group)


def _happening(*equal: Event) -> Happening:
    newest = ListedEvent(equal[0], None)
    return Happening(
        equal,
        wording.without_placeholders(in_common(equal))
        if len(equal) > 1 and newest.outcome is None
        else newest.words,
    )


def _is_news(event: Event, by_id: Mapping[int, Run]) -> bool:
    if event.kind == "submission.graded":
        # For an ended run, the event of its end contains the same.
        run = by_id.get(event.run_id or 0)
        return run is not None and not run.has_ended
    return event.kind in _NEWS or event.kind.startswith(("sweep.", "engine."))
