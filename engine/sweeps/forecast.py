"""Forecast a launch without launching (`--dry-run`): its checks, the order of its runs, and how long they will take."""

from __future__ import annotations

import heapq
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mlebench_console.engine.checks import Check
from mlebench_console.engine.control import EngineStatus, status
from mlebench_console.engine.model_costs import known_cost
from mlebench_console.engine.placements.checks import estimate
from mlebench_console.engine.placements.commands import JobEstimate
from mlebench_console.engine.placements.sbatch import profile_named
from mlebench_console.engine.places import Places
from mlebench_console.engine.providers import model_prices
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.engine.settings import EngineSettings, Prices, read_table
from mlebench_console.engine.space import free_bytes
from mlebench_console.engine.sweeps.checks import HostCapacity, check_all
from mlebench_console.environment.runner.host.readings import read_nvidia
from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.problems import Problem
from mlebench_console.state import database, runs
from mlebench_console.state.usage import model_calls
from mlebench_console.state.usage.samples import DATABASE_NAME, Samples, UnusableSamples

CONCURRENCY = "concurrency"
"""What limits the runs at once, where it is not a resource."""
_ATTEMPTS_MEASURED = 20


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep that is not launched yet.

    Attributes:
        starts_after: seconds after the launch, if every run before it takes as long as expected.
        seconds: how long it is expected to take.
        measured: whether that is known from runs of the same agent; else it is the time limit.
    """

    competition_id: str
    seed: int
    starts_after: float
    seconds: float
    measured: bool


@dataclass(frozen=True)
class PastRuns:
    """Durations of an agent's earlier runs, by competition, and the average disk use and model cost of a run."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    usual_seconds: float | None = None
    disk_bytes: int | None = None
    model_usd: float | None = None


@dataclass(frozen=True)
class JobsForecast:
    """The forecast of a launch on a batch system.

    Attributes:
        most: how many jobs the profile allows at the same time.
        live: how many of our runs are jobs there now.
        submitted_now: how many jobs would be submitted immediately.
        wait_here: how many of its runs would wait here.
        estimate: Slurm's estimate for the longest job; None where Slurm refuses or does not answer.
    """

    placement: str
    most: int
    live: int
    submitted_now: int
    wait_here: int
    estimate: JobEstimate | None

    @property
    def room(self) -> int:
        """How many more jobs the profile takes now."""
        return max(0, self.most - self.live)

    def document(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        found = asdict(self)
        if self.estimate is not None:
            found["estimate"]["said"] = self.estimate.message
        return found


@dataclass(frozen=True)
class Forecast:
    """The result of a dry run.

    Attributes:
        at_once: how many runs are live at once, by concurrency and by this host's resources.
        bound_by: what limits this number: `concurrency`, `CPUs`, `memory`, `GPUs` or `max_jobs`.
        seconds: until the last run ends, by the durations of earlier runs, or else by the time limit.
        seconds_at_most: the same if every run uses its whole time limit.
        measured: how many of the runs have a duration from earlier runs.
        jobs: the forecast of a batch system; None for runs on this host.
        fit_at_once: how many would be live at once with a higher concurrency, in the resources that are free now.
        seconds_if_full: until the last run ends, if so many were.
        model_usd: the cost of model calls, by those of earlier runs; None if none were counted.
        machine_cost: of the hours of all runs, by the prices in config.toml; None if there are none.
    """

    checks: tuple[Check, ...]
    planned: tuple[PlannedRun, ...]
    at_once: int
    bound_by: str
    seconds: float
    seconds_at_most: float
    measured: int
    jobs: JobsForecast | None = None
    fit_at_once: int = 0
    seconds_if_full: float = 0.0
    model_usd: float | None = None
    machine_cost: float | None = None
    currency: str = Prices.currency

    @property
    def leaves_room(self) -> bool:
        """Whether a higher concurrency alone would end it sooner."""
        return (
            self.bound_by == CONCURRENCY
            and self.fit_at_once > self.at_once
            and self.seconds_if_full < self.seconds
        )

    @property
    def can_launch(self) -> bool:
        """Whether all checks are good."""
        return all(check.allows_work for check in self.checks)


def forecast(
    launch: LaunchSweep, places: Places, engine: EngineStatus | None = None, *, starts_engine: bool = False
) -> Forecast:
    """Simulate a launch and check everything that it needs; this reads files.

    Args:
        launch: the launch.
        places: of the engine.
        engine: its status, read here if not given.
        starts_engine: whether the launch would start the engine if none is running.

    Raises:
        Problem: the state or config.toml can't be read.
    """
    engine = status(places) if engine is None else engine
    capacity = capacity_of(places, engine)
    known = past_runs(places, launch.spec.agent_id)
    disk = None if known.disk_bytes is None else known.disk_bytes * launch.run_count
    checks = tuple(check_all(launch, places, engine, capacity, disk, starts_engine=starts_engine))
    at_once, bound_by = runs_at_once(launch, capacity)
    jobs = _jobs(launch, places)
    if jobs is not None and jobs.most < at_once:
        at_once, bound_by = jobs.most, "max_jobs"
    planned = schedule(launch, known, at_once)
    full = _fit_at_once(launch, engine, capacity) if jobs is None else min(jobs.room, launch.run_count)
    prices = read_table(places.config_file, Prices)
    return Forecast(
        checks,
        planned,
        at_once,
        bound_by,
        _seconds(planned),
        _seconds(schedule(launch, PastRuns(), at_once)),
        sum(run.measured for run in planned),
        jobs,
        full,
        _seconds(schedule(launch, known, full)),
        None if known.model_usd is None else known.model_usd * launch.run_count,
        _machine_cost(launch, planned, prices),
        prices.currency,
    )


def _seconds(planned: Sequence[PlannedRun]) -> float:
    """Return the time until the last run ends."""
    return max((run.starts_after + run.seconds for run in planned), default=0.0)


def _fit_at_once(launch: LaunchSweep, engine: EngineStatus, capacity: HostCapacity) -> int:
    """Return how many runs of a launch fit in what other runs leave of this host."""
    used = engine.slots_used or 0.0 if engine.running else 0.0
    held = sum(bool(gpu.attempts) for gpu in engine.gpu_uses) if engine.running else 0
    free = replace(
        capacity,
        cpus=max(0.0, capacity.cpus - used),
        gpus=None if capacity.gpus is None else max(0, capacity.gpus - held),
    )
    return runs_at_once(replace(launch, concurrency=launch.run_count), free)[0]


def _machine_cost(launch: LaunchSweep, planned: Sequence[PlannedRun], prices: Prices) -> float | None:
    if prices.run_hour is None and prices.gpu_hour is None:
        return None
    resources = launch.spec.conditions.resources
    gpus = max(0, resources.gpus) * resources.gpu_share
    an_hour = (prices.run_hour or 0.0) + (prices.gpu_hour or 0.0) * gpus
    return an_hour * sum(run.seconds for run in planned) / 3600


def _jobs(launch: LaunchSweep, places: Places) -> JobsForecast | None:
    placement = launch.spec.conditions.placement
    if placement == HERE:
        return None
    try:
        profile = profile_named(placement, places.config_file)
    except Problem:
        return None  # a check reports it
    try:
        job = estimate(launch.spec, profile)
    except Problem:
        job = None  # likewise
    live = 0
    if database.exists(places.state_dir):
        with closing(database.open_for_reading(places.state_dir)) as state:
            live = len(runs.live_attempts_on(state, placement))
    room = max(0, profile.max_jobs - live)
    now = max(0, min(room, launch.concurrency, launch.run_count))
    return JobsForecast(placement, profile.max_jobs, live, now, launch.run_count - now, job)


def capacity_of(places: Places, engine: EngineStatus) -> HostCapacity:
    """Return the resources that the engine has for runs, or would have if it was started."""
    settings = read_table(places.config_file, EngineSettings)
    running = engine.running and engine.slots is not None
    return HostCapacity(
        cpus=engine.slots if running and engine.slots is not None else settings.cpus,
        memory_bytes=engine.memory_for_runs if running else settings.memory_bytes,
        gpus=engine.gpus if running else len(read_nvidia()),
        free_disk=free_bytes(places.state_dir),
    )


def past_runs(places: Places, agent_id: str) -> PastRuns:
    """Read the durations and disk use of an agent's earlier runs."""
    if not database.exists(places.state_dir):
        return PastRuns()
    with closing(database.open_for_reading(places.state_dir)) as state:
        past = runs.past_attempts(state, agent_id)
        latest = [attempt for attempt, _competition, _seconds in past[:_ATTEMPTS_MEASURED]]
        calls = [model_calls.of_attempt(state, attempt) for attempt in latest]
    seconds = defaultdict(list)
    for _attempt, competition_id, lasted in past:
        seconds[competition_id].append(lasted)
    every = [lasted for _attempt, _competition, lasted in past]
    prices = model_prices(places.config_file)
    costs = [known_cost(uses, prices) for uses in calls if uses]
    return PastRuns(
        {competition: statistics.median(found) for competition, found in seconds.items()},
        statistics.median(every) if every else None,
        _usual_disk(places, latest),
        statistics.fmean(costs) if costs else None,
    )


def runs_at_once(launch: LaunchSweep, capacity: HostCapacity) -> tuple[int, str]:
    """Return how many runs fit at once, and what limits them."""
    resources = launch.spec.conditions.resources
    if launch.spec.conditions.placement != HERE:
        return max(0, launch.concurrency), CONCURRENCY  # the free capacity of a cluster is unknown
    bounds: list[tuple[float, str]] = [(max(0, launch.concurrency), CONCURRENCY)]
    if resources.cpus > 0:
        bounds.append((math.floor(capacity.cpus / resources.cpus + 1e-9), "CPUs"))
    if resources.memory_bytes and capacity.memory_bytes is not None:
        bounds.append((capacity.memory_bytes // resources.memory_bytes, "memory"))
    if resources.gpus and capacity.gpus is not None:
        wanted = capacity.gpus if resources.gpus < 0 else resources.gpus
        bounds.append((capacity.gpus // wanted * resources.runs_per_gpu if wanted else 0, "GPUs"))
    most, bound_by = min(bounds, key=lambda bound: bound[0])
    return int(most), bound_by


def schedule(launch: LaunchSweep, known: PastRuns, at_once: int) -> tuple[PlannedRun, ...]:
    """Return when each run would start, in the order of the queue; empty if no run fits."""
    spec, limit = launch.spec, launch.spec.conditions.time_limit_seconds
    slots = [0.0] * min(at_once, launch.run_count)
    planned = []
    last = -math.inf
    for seed in range(1, spec.seeds + 1):
        for competition in spec.competitions if slots else ():
            past = known.seconds.get(competition, known.usual_seconds)
            seconds = limit if past is None else min(past, limit)
            last = max(heapq.heappop(slots), last + spec.start_ramp_seconds)
            heapq.heappush(slots, last + seconds)
            planned.append(PlannedRun(competition, seed, last, seconds, past is not None))
    return tuple(planned)


def _usual_disk(places: Places, attempts: Sequence[int]) -> int | None:
    """Return the average disk use of a run; None where it was not measured, or can't be read."""
    if not attempts or not (places.state_dir / DATABASE_NAME).is_file():
        return None
    with closing(Samples(places.state_dir, writable=False)) as samples:
        try:
            held = [most for attempt in attempts if (most := samples.most_disk(attempt)) is not None]
        except UnusableSamples:
            return None
    return round(statistics.fmean(held)) if held else None
