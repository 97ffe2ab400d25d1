"""The overview: the progress of each sweep, runs that may need a person, and recent events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.console.nouns.costs import SweepCosts, known_prices, read_sweep_costs, sweep_budgets
from mlebench_console.console.nouns.event import (
    FEWEST_EQUAL,
    OF_ONE_TIME,
    RESULTS,
    ListedEvent,
    common_words,
    what_happened,
)
from mlebench_console.console.views.sweep import listed_sweeps
from mlebench_console.engine.needs.needs import NOT_TO_BE_HAD, NeedFacts, read_needs
from mlebench_console.engine.needs.standing import SweepStanding, read_standings
from mlebench_console.state import events, runs
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import Event, EventKind
from mlebench_console.state.records import Run

_EVENTS_SHOWN = 60


@dataclass(frozen=True)
class Happening:
    """A recent event of one run, or equal events of several.

    Attributes:
        listed: the newest one first.
        text: what happened in all of them, of failures without their class.
    """

    listed: tuple[ListedEvent, ...]
    text: str

    @property
    def events(self) -> tuple[Event, ...]:
        """The events, the newest one first."""
        return tuple(one.event for one in self.listed)

    @property
    def event(self) -> Event:
        """The newest event."""
        return self.listed[0].event

    @property
    def count(self) -> int:
        """The number of events."""
        return len(self.listed)


@dataclass(frozen=True)
class Overview:
    """The data of the overview.

    Attributes:
        costs: those of the model calls of each sweep; none where no gateway counts them.
        needs: what may need a person.
        run_of: the runs of the events, by their numbers.
    """

    sweeps: tuple[SweepStanding, ...]
    costs: Mapping[str, SweepCosts]
    needs: NeedFacts
    events: tuple[Happening, ...]
    run_of: dict[int, Run]


def overview(database: Database, config_file: Path, now: float) -> Overview:
    """Read the overview; model calls are priced by config.toml."""
    by_sweep: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs.of_all_sweeps(database):
        by_sweep[run.sweep_id].append(run)
    known = listed_sweeps(database)
    prices = known_prices(config_file)
    shared = sweep_budgets(database)
    every = [run for found in by_sweep.values() for run in found]
    by_id = {run.id: run for run in every}
    happened = [event for event in events.newest(database, limit=8 * _EVENTS_SHOWN) if _is_news(event, by_id)]
    # The order of writing is not the order of happening: runners may report events much later.
    happened.sort(key=lambda event: (event.at, event.id), reverse=True)
    standings = read_standings(database, known, now, by_sweep)
    costs = {
        one.sweep.id: read_sweep_costs(
            database, one.sweep, by_sweep[one.sweep.id], prices, one.counts.medals, shared
        )
        for one in standings
    }
    return Overview(
        sweeps=tuple(standings),
        costs={sweep_id: found for sweep_id, found in costs.items() if found is not None},
        needs=read_needs(database),
        events=tuple(_together(happened))[:_EVENTS_SHOWN],
        run_of={event.run_id: by_id[event.run_id] for event in happened if event.run_id in by_id},
    )


_NEWS = frozenset(
    {
        EventKind.RUN_FINISHED,
        EventKind.RUN_FAILED,
        EventKind.RUN_STOPPED,
        EventKind.RUN_QUEUED,
        EventKind.GRADING_FAILED,
        EventKind.GRADING_WORKS,
        EventKind.DATASET_PREPARED,
        *map(EventKind.of_dataset, NOT_TO_BE_HAD),
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
        of_cause = event.kind == EventKind.RUN_FAILED
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
    listed = tuple(ListedEvent(event, None) for event in equal)
    return Happening(listed, common_words(listed, brief=True))


def _is_news(event: Event, by_id: Mapping[int, Run]) -> bool:
    if event.kind == EventKind.SUBMISSION_GRADED:
        # For an ended run, the event of its end contains the same.
        run = by_id.get(event.run_id or 0)
        return run is not None and not run.has_ended
    return event.kind in _NEWS or event.subject in ("sweep", "engine")
