"""The overview: the progress of each sweep, runs that may need a person, and recent events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.console.nouns.costs import SweepCosts, known_prices, read_sweep_costs, sweep_budgets
from mlebench_console.console.nouns.event import EventRow, ListedEvent, folded
from mlebench_console.console.views.sweep import listed_sweeps
from mlebench_console.engine.needs.needs import NOT_TO_BE_HAD, NeedFacts, read_needs
from mlebench_console.engine.needs.standing import SweepStanding, read_standings
from mlebench_console.state import events, runs
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import Event, EventKind
from mlebench_console.state.records import Run

_EVENTS_SHOWN = 60


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
    events: tuple[EventRow, ...]
    run_of: dict[int, Run]


def overview(database: Database, config_file: Path, now: float) -> Overview:
    """Read the overview; model calls are priced by config.toml."""
    by_sweep: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs.of_all_sweeps(database):
        by_sweep[run.sweep_id].append(run)
    known = listed_sweeps(database)
    prices = known_prices(config_file)
    shared = sweep_budgets(database)
    by_id = {run.id: run for found in by_sweep.values() for run in found}
    happened = [event for event in events.newest(database, limit=8 * _EVENTS_SHOWN) if _is_news(event, by_id)]
    # The order of writing is not the order of happening: runners may report events much later.
    happened.sort(key=lambda event: (event.at, event.id), reverse=True)
    members = [by_id.get(event.run_id or 0) for event in happened]
    listed = (
        ListedEvent(event, None if run is None else run.seed)
        for event, run in zip(happened, members, strict=True)
    )
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
        events=tuple(folded(listed))[:_EVENTS_SHOWN],
        run_of={run.id: run for run in members if run is not None},
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


def _is_news(event: Event, by_id: Mapping[int, Run]) -> bool:
    if event.kind == EventKind.SUBMISSION_GRADED:
        # For an ended run, the event of its end contains the same.
        run = by_id.get(event.run_id or 0)
        return run is not None and not run.has_ended
    return event.kind in _NEWS or event.subject in ("sweep", "engine")
