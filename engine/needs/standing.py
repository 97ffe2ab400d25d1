"""How sweeps stand: their counts, medals and bounds, when they end or why that is not known, and why nothing starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlebench_console.engine.needs.waits import QueuedRun, Wait, WaitKind, read_queued_run
from mlebench_console.engine.scoreboard.aggregation import aggregate, complete_seeds, interim_of
from mlebench_console.engine.scoreboard.model import Cell, Interim, Measure, Trial, results_of
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.engine.scoreboard.timeline import ExpectedEnd, NoEnd, end_of_sweep
from mlebench_console.state import datasets, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome, RunState, SweepState
from mlebench_console.state.records import DatasetState, Run, Sweep, SweepCounts

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus

_OBSTACLES = (WaitKind.DATASET, WaitKind.BUDGET, WaitKind.PREPARING, WaitKind.PROVIDER)
# Outcomes and states in the order in which bars and counts show them.
TALLIED: tuple[Outcome | RunState, ...] = (
    *Outcome,
    RunState.FAILED,
    RunState.STOPPED,
    RunState.RUNNING,
    RunState.QUEUED,
)


@dataclass(frozen=True)
class SweepStanding:
    """How a sweep stands.

    Attributes:
        any_medal: the medal rate over the seeds that every competition has finished.
        interim: the progress of its runs, and the bounds of the medal rate so far.
        tally: the number of runs by outcome or state, in the order of `TALLIED`; live runs that wait in a batch
            system's queue count as queued, all others as running.
        planned_end: when its last run ends while an engine runs, or why that is not known.
        next: its next queued run; None if none is queued.
    """

    sweep: Sweep
    counts: SweepCounts
    any_medal: Cell | None
    interim: Interim | None
    tally: Mapping[Outcome | RunState, int]
    planned_end: ExpectedEnd | NoEnd
    next: QueuedRun | None = None

    @property
    def ended(self) -> int:
        """The number of its runs that have ended."""
        return self.counts.finished + self.counts.failed + self.counts.stopped

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens in it without a person's action."""
        return not self.counts.live and (not self.counts.queued or self.sweep.state is SweepState.STOPPED)

    def end(self, engine: EngineStatus | None) -> ExpectedEnd | NoEnd:
        """Return when it ends, or why that is not known; without a running engine nothing starts."""
        is_down = engine is not None and not engine.running
        return NoEnd.ENGINE if is_down and self.planned_end is not NoEnd.OVER else self.planned_end

    def wait(self, engine: EngineStatus | None) -> Wait | None:
        """Return why none of its queued runs starts; None if none is queued, or if the next one starts in a moment."""
        waits = [] if self.next is None else self.next.waits(engine)
        # Of several that could start the order decides, which holds up none of them.
        return next((wait for wait in waits if wait.kind is not WaitKind.ORDER), None)

    def obstacle(self, engine: EngineStatus | None) -> Wait | None:
        """Return why none of its queued runs starts, where the states of engine and sweep don't say it already.

        None where that ends by itself, as soon as other runs have ended or a moment has passed.
        """
        wait = self.wait(engine)
        return wait if wait is not None and wait.kind in _OBSTACLES else None


def read_standings(
    database: Database,
    chosen: Sequence[Sweep],
    now: float,
    members: Mapping[str, Sequence[Run]] | None = None,
) -> list[SweepStanding]:
    """Read how some sweeps stand; `members` are their runs by sweep, if they are known."""
    counts = sweeps.counts(database)
    waiting = {number for number, attempt in runs.placed_elsewhere(database).items() if attempt.is_in_queue}
    found = datasets.in_state(database, DatasetState.PREPARED)
    prepared = {(one.competition_id, one.edition) for one in found}
    standings = []
    for sweep in chosen:
        own = runs.of_sweep(database, sweep.id) if members is None else members.get(sweep.id, ())
        competitions, trials = sweep.spec.competitions, [trial_of(run) for run in own]
        queued = [
            # Runs whose data are missing let others go first.
            ((run.competition_id, sweep.conditions.edition) not in prepared, run.position, run)
            for run in own
            if run.state is RunState.QUEUED
        ]
        standings.append(
            SweepStanding(
                sweep,
                counts.get(sweep.id, SweepCounts()),
                any_medal_of(trials, competitions),
                interim_of(trials, competitions),
                _tally(own, waiting),
                end_of_sweep(database, sweep, own, now),
                read_queued_run(database, min(queued)[2], sweep, now, own) if queued else None,
            )
        )
    return standings


def any_medal_of(trials: Sequence[Trial], competitions: Sequence[str]) -> Cell | None:
    """Return the medal rate over the seeds that every competition has finished; None before the first."""
    results = results_of((trial.competition_id, trial.earned) for trial in trials)
    if not complete_seeds(results, competitions):
        return None
    return aggregate(results, competitions).get(Measure.ANY_MEDAL)


def _tally(members: Sequence[Run], waiting: Container[int]) -> dict[Outcome | RunState, int]:
    def kind(run: Run) -> Outcome | RunState:
        if run.is_live:
            return RunState.QUEUED if run.id in waiting else RunState.RUNNING
        return run.outcome if run.outcome is not None else run.state

    counts = Counter(map(kind, members))
    return {each: counts[each] for each in TALLIED if counts[each]}
