"""The timeline of sweeps: their attempts as bars on lanes, events that concern many of them, and the expected end.

Only `read_timeline` reads the state; everything else here is pure computation.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from mlebench_console.engine.scoreboard.aggregation import interim_of
from mlebench_console.engine.scoreboard.model import Interim
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state import datasets, events, runs
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import MEDALS, FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import IMPORTED, Attempt, DatasetState, Run, Sweep

# Problems of a GPU, which may end several runs at once.
_GPU_PROBLEMS = frozenset({ProblemCode.GPU_LOST, ProblemCode.GPU_FAILED})


class MarkKind(StrEnum):
    """What happened to a host or to a whole sweep; values are names for people, the most important first."""

    GPU_LOST = "GPU lost"
    OUTAGE = "provider outage"
    ENGINE = "engine started"
    KILLED = "stopped by hand"
    PAUSED = "sweep paused"
    RESUMED = "sweep resumed"


# The events of the state that become marks.
_MARKED_EVENTS: dict[str, MarkKind] = {
    EventKind.ENGINE_STARTED: MarkKind.ENGINE,
    EventKind.PROVIDER_OUTAGE: MarkKind.OUTAGE,
    EventKind.RUN_STOP_REQUESTED: MarkKind.KILLED,
    EventKind.SWEEP_PAUSED: MarkKind.PAUSED,
    EventKind.SWEEP_ACTIVE: MarkKind.RESUMED,
    EventKind.SWEEP_STOPPED: MarkKind.KILLED,
}


@dataclass(frozen=True)
class Bar:
    """One attempt of a run.

    Attributes:
        attempt: its number.
        of: the number of the run's latest attempt.
        begin: when its agent started, or, if it never started, when the attempt was launched.
        end: when its agent ended; None while the attempt is live.
        state: of a run's latest attempt, the run's state; of an earlier attempt, how that one ended.
        outcome: the grade of its final submission.
        standing: the outcome that a live attempt would get if it ended now; None: nothing is graded yet.
        problem, suspected: the codes of why it failed, where there are any.
        cause: why it failed, or why a person should look at it while it is live.
        node: the host that it ran on; empty for the engine's own host.
    """

    run_id: int
    sweep_id: str
    competition_id: str
    seed: int
    attempt: int
    of: int
    begin: float
    end: float | None
    state: RunState
    outcome: Outcome | None = None
    standing: Outcome | None = None
    score: float | None = None
    failure: FailureClass | None = None
    problem: ProblemCode | None = None
    suspected: ProblemCode | None = None
    cause: str = ""
    node: str = ""
    reroll: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the attempt has not ended."""
        return self.end is None

    @property
    def lost_gpu(self) -> bool:
        """Whether it is known or suspected that the attempt failed because its host lost a GPU."""
        return self.failure is not None and not _GPU_PROBLEMS.isdisjoint({self.problem, self.suspected})

    def until(self, now: float) -> float:
        """Return when it ended, or now."""
        return max(self.begin, now if self.end is None else self.end)


@dataclass(frozen=True)
class Lane:
    """Attempts that don't overlap in time, in order of time.

    Attributes:
        node: the host that they ran on; empty for the engine's own host.
        number: counts the lanes of a host from 1.
    """

    node: str
    number: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Mark:
    """An event that concerns more than one attempt, or that ended one from outside."""

    at: float
    kind: MarkKind
    text: str


@dataclass(frozen=True)
class ExpectedEnd:
    """When the last run of a sweep ends, or an earlier one makes room for a queued run.

    Attributes:
        at: in seconds since the epoch.
        at_most: whether no run has ended yet, so that every run is assumed to use its whole time limit.
    """

    at: float
    at_most: bool


class NoEnd(StrEnum):
    """Why it is not known when a sweep ends.

    Attributes:
        OVER: none of its runs is live or queued.
        PAUSED: it has queued runs and is paused or stopped.
        DATASETS: the data of a queued run are neither prepared nor being prepared.
        ENGINE: no engine is running.
        UNKNOWN: its runs were not launched here.
    """

    OVER = "over"
    PAUSED = "paused"
    DATASETS = "datasets"
    ENGINE = "engine"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Timeline:
    """One sweep or several on one time axis.

    Attributes:
        now: when it was read.
        begin: when the first attempt began; `now` where there is none.
        ends: when the last run is expected to end; None where no run is left, or where that depends on a person.
        medals: when runs ended with a medal, in order, and which medal.
        queued: how many runs are queued.
        interim: how far the runs are; its bounds are meaningful for a single sweep only. None where there are no runs.
    """

    sweep_ids: tuple[str, ...]
    now: float
    begin: float
    ends: ExpectedEnd | None
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    medals: tuple[tuple[float, Outcome], ...]
    queued: int
    interim: Interim | None

    @property
    def bars(self) -> list[Bar]:
        """Every attempt, lane by lane."""
        return [bar for lane in self.lanes for bar in lane.bars]

    @property
    def last(self) -> float:
        """When the last bar ends; now for live attempts, or where there are no bars."""
        return max((bar.until(self.now) for bar in self.bars), default=self.now)

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        return asdict(self)


_STEPS = (
    *(60, 300, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(days * 86400 for days in (1, 2, 7, 14, 28, 56, 112, 365)),
)


def time_ticks(begin: float, end: float, most: float) -> list[tuple[float, str]]:
    """Choose at most `most` round local times within a span, each with its label: `06:00`, or at midnight `Mar 14`."""
    step = next((step for step in _STEPS if (end - begin) / step <= most), _STEPS[-1])
    offset = time.localtime(begin).tm_gmtoff
    first = math.ceil((begin + offset) / step)
    found: list[tuple[float, str]] = []
    for number in range(first, math.ceil((end + offset) / step)):
        at = number * step - offset
        is_day = step >= 86400 or number * step % 86400 == 0
        found.append((at, time.strftime("%b %d" if is_day else "%H:%M", time.localtime(at))))
    return found


def lanes_of(bars: Iterable[Bar]) -> tuple[Lane, ...]:
    """Put each attempt on the first lane of its host that is free when the attempt begins."""
    lanes: defaultdict[str, list[list[Bar]]] = defaultdict(list)
    for bar in sorted(bars, key=lambda bar: (bar.begin, bar.run_id, bar.attempt)):
        of_host = lanes[bar.node]
        free = (lane for lane in of_host if lane[-1].end is not None and lane[-1].end <= bar.begin)
        lane = next(free, None)
        if lane is None:
            of_host.append(lane := [])
        lane.append(bar)
    return tuple(
        Lane(node, number, tuple(lane))
        for node, of_host in sorted(lanes.items())
        for number, lane in enumerate(of_host, start=1)
    )


def expected_end(
    members: Sequence[Run], *, concurrency: int, limit_seconds: float, now: float
) -> ExpectedEnd | None:
    """Estimate when the last run of a sweep ends, at the given concurrency."""
    planned = _planned(members, concurrency, limit_seconds, now)
    last = max((end for _begin, end in planned.values()), default=None)
    return None if last is None else ExpectedEnd(last, at_most=not _durations(members))


def expected_start(
    members: Sequence[Run], run_id: int, *, concurrency: int, limit_seconds: float, now: float
) -> ExpectedEnd | None:
    """Estimate when a slot becomes free for a queued run: when the run before it ends."""
    planned = _planned(members, concurrency, limit_seconds, now)
    return ExpectedEnd(planned[run_id][0], at_most=not _durations(members)) if run_id in planned else None


def _durations(members: Sequence[Run]) -> dict[str, list[float]]:
    """Return how long the ended runs took, by competition."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    for run in members:
        if run.state is not RunState.STOPPED and run.ended_at is not None and run.started_at is not None:
            took[run.competition_id].append(run.ended_at - run.started_at)
    return took


def _planned(
    members: Sequence[Run], concurrency: int, limit_seconds: float, now: float
) -> dict[int, tuple[float, float]]:
    """Estimate the begin and the end of each live and queued run of a sweep, by the run's number.

    A run is expected to take the median time of the ended runs of its competition; without any, that of all ended
    runs; without any of these, its whole time limit.
    """
    took = _durations(members)
    usual = median([seconds for found in took.values() for seconds in found]) if took else limit_seconds
    expected = {name: median(found) for name, found in took.items()}

    def seconds_of(run: Run) -> float:
        return min(expected.get(run.competition_id, usual), limit_seconds or usual)

    planned: dict[int, tuple[float, float]] = {}
    for run in members:
        if run.is_live:
            began = now if run.started_at is None else run.started_at
            end = began + seconds_of(run)
            # A run that takes longer than expected may use its whole time limit.
            planned[run.id] = began, max(now, end if end > now else began + limit_seconds)
    free = [end for _begin, end in planned.values()]
    free += [now] * (max(1, concurrency) - len(free))
    heapq.heapify(free)
    for run in sorted((run for run in members if run.state is RunState.QUEUED), key=lambda run: run.position):
        begin = heapq.heappop(free)
        planned[run.id] = begin, begin + seconds_of(run)
        heapq.heappush(free, planned[run.id][1])
    return planned


def end_of_sweep(database: Database, sweep: Sweep, members: Sequence[Run], now: float) -> ExpectedEnd | NoEnd:
    """Estimate when a sweep ends while an engine runs, or return why that is not known."""
    queued = {run.competition_id for run in members if run.state is RunState.QUEUED}
    if queued and sweep.state is not SweepState.ACTIVE:
        return NoEnd.PAUSED
    if queued and not _on_the_way(database, sweep.conditions.edition).issuperset(queued):
        return NoEnd.DATASETS
    if not sweep.concurrency:
        return NoEnd.UNKNOWN
    limit = sweep.conditions.time_limit_seconds
    end = expected_end(members, concurrency=sweep.concurrency, limit_seconds=limit, now=now)
    return NoEnd.OVER if end is None else end


def _on_the_way(database: Database, edition: str) -> set[str]:
    """Return the competitions whose data are prepared, or will be without an operator."""
    return {
        one.competition_id
        for one in datasets.all_datasets(database)
        if one.edition == edition and (one.state.is_busy or one.state is DatasetState.PREPARED)
    }


def read_timeline(database: Database, chosen: Sequence[Sweep], now: float) -> Timeline:
    """Read the timeline of some sweeps."""
    members = {sweep.id: runs.of_sweep(database, sweep.id) for sweep in chosen}
    bars: list[Bar] = []
    for sweep in chosen:
        if sweep.conditions.runtime != IMPORTED:  # it is not known when imported runs ran
            by_id = {run.id: run for run in members[sweep.id]}
            bars += [
                _bar(attempt, by_id[attempt.run_id]) for attempt in runs.attempts_of_sweep(database, sweep.id)
            ]
    begin = min((bar.begin for bar in bars), default=now)
    ids = {sweep.id for sweep in chosen}
    happened = events.of_kinds(database, _MARKED_EVENTS, since=begin)
    marks = [
        Mark(event.at, kind, event.text)
        for event in happened
        if (event.sweep_id is None or event.sweep_id in ids)
        and (kind := _MARKED_EVENTS.get(event.kind)) is not None
    ]
    marks += [
        Mark(bar.end, MarkKind.GPU_LOST, f"{bar.competition_id} seed {bar.seed}: {bar.cause}")
        for bar in bars
        if bar.lost_gpu and bar.end is not None
    ]
    every = [run for found in members.values() for run in found]
    ends = [end_of_sweep(database, sweep, members[sweep.id], now) for sweep in chosen]
    known = [end for end in ends if isinstance(end, ExpectedEnd)]
    return Timeline(
        sweep_ids=tuple(sweep.id for sweep in chosen),
        now=now,
        begin=begin,
        ends=max(known, key=lambda end: end.at, default=None),
        lanes=lanes_of(bars),
        marks=tuple(sorted(marks, key=lambda mark: mark.at)),
        medals=tuple(
            sorted(
                (run.ended_at, run.outcome)
                for run in every
                if run.outcome in MEDALS and run.outcome is not None and run.ended_at is not None
            )
        ),
        queued=sum(run.state is RunState.QUEUED for run in every),
        interim=interim_of(
            (trial_of(run) for run in every), {name for sweep in chosen for name in sweep.spec.competitions}
        ),
    )


def counted_marks(marks: Iterable[Mark]) -> Mapping[MarkKind, int]:
    """Count marks by their kinds, the most important kind first; kinds without any are left out."""
    found = [mark.kind for mark in marks]
    return {kind: found.count(kind) for kind in MarkKind if kind in found}


def _bar(attempt: Attempt, run: Run) -> Bar:
    is_latest = attempt.number == run.attempts
    begin = attempt.created_at if attempt.started_at is None else attempt.started_at
    end = attempt.ended_at
    if is_latest and run.state in (RunState.STARTING, RunState.RUNNING):
        end = None
    elif end is None:  # the attempt was lost before its agent started
        end = run.ended_at if is_latest and run.ended_at is not None else begin
    if attempt.failure_class is not None:
        state = RunState.FAILED
    elif attempt.outcome is not None:
        state = RunState.FINISHED
    else:
        state = run.state if is_latest else RunState.STOPPED
    return Bar(
        run_id=run.id,
        sweep_id=run.sweep_id,
        competition_id=run.competition_id,
        seed=run.seed,
        attempt=attempt.number,
        of=run.attempts,
        begin=begin,
        end=None if end is None else max(begin, end),
        state=state,
        outcome=attempt.outcome,
        standing=run.standing if is_latest else None,
        score=run.score if is_latest else None,
        failure=attempt.failure_class,
        problem=attempt.problem,
        suspected=attempt.suspected,
        cause=f"suspected: {attempt.suspected.words}; {attempt.failure_text}"
        if attempt.suspected
        else attempt.failure_text,
        node=attempt.node if attempt.placement != HERE else "",
        reroll=attempt.reroll,
    )
