"""Start queued runs as slots become free, and queue infrastructure failures again.

The choice among runs is made in `engine.runs.scheduling`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping

from mlebench_console.engine.agent_snapshots import agent_of_sweep
from mlebench_console.engine.agents import required_secrets
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places
from mlebench_console.engine.providers import providers_of
from mlebench_console.engine.runs import launching
from mlebench_console.engine.runs.budgets import SharedBudgets
from mlebench_console.engine.runs.scheduling import (
    RETRY_BACKOFF,
    Demand,
    Free,
    GpuPool,
    choose,
    lease,
)
from mlebench_console.engine.settings import EngineSettings
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.backoff import Retries
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import HERE, RunConditions
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.problems import EnvironmentProblem, Problem
from mlebench_console.state import runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import ENGINE, FailureClass, RunState, SweepState
from mlebench_console.state.records import Attempt, Run, Sweep
from mlebench_console.state.runs import FailedRun
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import outages

_MOST_STARTS_A_STEP = 8


class Starter:
    """Starts runs: records each attempt in the state before anything else exists, then passes it to a runner."""

    def __init__(
        self,
        database: Database,
        places: Places,
        placements: Placements,
        clock: Clock,
        log: Log,
        redaction: TextRedactor,
        gpus: GpuPool,
        settings: EngineSettings,
    ) -> None:
        self._database = database
        self._places = places
        self._placements = placements
        self._clock = clock
        self._log = log
        self._redaction = redaction
        self._gpus = gpus
        self._settings = settings
        self.budgets = SharedBudgets(database, places.state_dir, clock, log)
        self._ramp = StartRamp(database, clock)
        # Attempts that no runner has yet, each with its GPUs.
        self._waiting: dict[int, tuple[Attempt, tuple[str, ...]]] = {}
        self._retries: Retries[int | str] = Retries(clock)  # by attempt or placement
        self.slots_used = 0.0

    @property
    def problem(self) -> str:
        """What can't be passed to a runner at the moment; empty without a problem."""
        return str(self._retries)

    def recover(self) -> None:
        """After a start of the engine, pass on attempts that were recorded but never reached a runner."""
        self._placements.recover()
        without_order: list[tuple[Sweep, Attempt]] = []
        for attempt in runs.live_attempts(self._database):
            run = runs.get(self._database, attempt.run_id)
            sweep = sweeps.get(self._database, run.sweep_id)
            self._learn_secrets(sweep)
            if run.state is RunState.GRADING:
                continue
            try:
                order = launching.read_order(self._places.state_dir, attempt)
            except (
                Problem
            ) as problem:  # another attempt's directory, or an unreadable order: intake reports it
                self._log(f"run {run.id} can't go on", problem)
                continue
            if order is None:
                without_order.append((sweep, attempt))
            else:
                self._hand_over(attempt, order.gpu_uuids)
        for sweep, attempt in without_order:  # last, because now the GPUs of all others are known
            wanted = _gpus_of_host(sweep.conditions)
            free = self._free_gpus() if wanted else {}
            devices = lease(free, wanted, sweep.conditions.resources.gpu_share) or ()
            self._hand_over(attempt, devices)

    def step(self) -> None:
        """Start the runs that may start now, except in sweeps with a run that could not be passed on yet."""
        self._hand_over_waiting()
        everything = sweeps.with_work(self._database)
        live = runs.occupying_counts(self._database)
        of_host = [sweep for sweep in everything if sweep.conditions.placement == HERE]
        self.slots_used = sum(sweep.conditions.resources.cpus * live.get(sweep.id, 0) for sweep in of_host)
        away = outages.unreachable(self._database)
        active = {
            sweep.id: sweep
            for sweep in everything
            if sweep.state is SweepState.ACTIVE
            and self.budgets.has_room(sweep.id)
            and away.isdisjoint(sweep.conditions.models.gateway)
        }
        for attempt, _gpu_uuids in self._waiting.values():
            active.pop(runs.get(self._database, attempt.run_id).sweep_id, None)
        elsewhere = {sweep.conditions.placement for sweep in active.values()} - {HERE}
        self._retries.keep_only(elsewhere | self._waiting.keys())
        for placement in elsewhere:
            self._start_on(placement, active, live)
        demands = [self._demand(sweep, live.get(sweep.id, 0)) for sweep in of_host if sweep.id in active]
        memory_used = sum(
            (sweep.conditions.resources.memory_bytes or 0) * live.get(sweep.id, 0) for sweep in of_host
        )
        free = Free(
            self._settings.cpus - self.slots_used,
            self._settings.memory_bytes - memory_used,
            self._free_gpus() if any(demand.gpus for demand in demands) else {},
        )
        self._start_all(choose(demands, free=free, at_most=_MOST_STARTS_A_STEP))

    def _start_on(self, name: str, active: Mapping[str, Sweep], live: Mapping[str, int]) -> None:
        """Start as many runs as another placement has room for, regardless of this host's resources."""
        if self._retries.must_wait(name):
            return
        try:
            room = self._placements.named(name).room(name)
        except Problem as problem:  # its table is gone from config.toml
            self._log(f"no runs start on placement {name}", problem)
            self._retries.note(name, f"no runs start on placement {name}: {problem.in_one_line()}")
            return
        self._retries.clear(name)
        at_most = _MOST_STARTS_A_STEP if room is None else min(room, _MOST_STARTS_A_STEP)
        if not at_most:
            return
        demands = [
            self._demand(sweep, live.get(sweep.id, 0))
            for sweep in active.values()
            if sweep.conditions.placement == name
        ]
        self._start_all(choose(demands, free=Free(math.inf, math.inf, {}), at_most=at_most))

    def _start_all(self, chosen: Iterable[tuple[int, tuple[str, ...]]]) -> None:
        """Start what was chosen, but nothing more of a sweep that one of its runs has paused."""
        for run_id, gpu_uuids in chosen:
            run = runs.get(self._database, run_id)
            sweep = sweeps.get(self._database, run.sweep_id)
            if sweep.state is SweepState.ACTIVE:
                self._start(sweep, run, gpu_uuids)

    def _demand(self, sweep: Sweep, live: int) -> Demand:
        room = self._ramp.may_start(sweep, min(max(0, sweep.concurrency - live), _MOST_STARTS_A_STEP))
        ready = (
            runs.next_ready(self._database, sweep.id, sweep.conditions.edition, limit=room) if room else []
        )
        resources = sweep.conditions.resources
        return Demand(
            sweep.id,
            sweep.priority,
            sweep.concurrency,
            resources.cpus,
            live,
            tuple(run.id for run in ready),
            resources.memory_bytes or 0,
            _gpus_of_host(sweep.conditions),
            resources.gpu_share,
        )

    def _free_gpus(self) -> dict[str, float]:
        return self._gpus.free(runs.occupying_attempts(self._database))

    def _start(self, sweep: Sweep, run: Run, gpu_uuids: tuple[str, ...]) -> None:
        try:
            kind = self._placements.named(sweep.conditions.placement).runtime(sweep.conditions.runtime)
        except Problem as problem:
            self._log(f"sweep {sweep.id} is paused", problem)
            sweeps.set_state(self._database, sweep.id, SweepState.PAUSED, now=self._clock.now())
            return
        token = transitions.new_token()
        directory = protocol.attempt_folder(sweep.id, run.competition_id, run.seed, run.attempts + 1, token)
        attempt = transitions.launch(
            self._database,
            run.id,
            directory=directory,
            runtime=kind,
            now=self._clock.now(),
            token=token,
            placement=sweep.conditions.placement,
        )
        self._ramp.note_start(sweep.id)
        self._learn_secrets(sweep)
        self._hand_over(attempt, gpu_uuids)

    def _hand_over(self, attempt: Attempt, gpu_uuids: tuple[str, ...]) -> None:
        """Pass an attempt to its runner; after an error of the disk it keeps its GPUs and is tried again.

        Any other error fails the run and pauses its sweep, because the next runs would fail the same way. An attempt
        whose agent may already be running is never failed here.
        """
        run = runs.get(self._database, attempt.run_id)
        sweep = sweeps.get(self._database, run.sweep_id)
        self._waiting[attempt.id] = attempt, gpu_uuids
        self._gpus.hold(attempt.id, gpu_uuids, sweep.conditions.resources.gpu_share)
        try:
            if _gpus_of_host(sweep.conditions) and not gpu_uuids:
                raise EnvironmentProblem("its GPUs are not free any more", "other runs use them")
            launching.hand_over(
                self._placements.of(attempt),
                self._places,
                sweep,
                run,
                attempt,
                gpu_uuids,
                self.budgets.notice_for(sweep.id),
            )
        except Exception as error:  # noqa: BLE001 - any error must be shown, or the run would stay STARTING for ever
            self._log(f"run {run.id} can't be passed to its runner", error)
            claim = self._places.state_dir / attempt.directory / protocol.CLAIM
            if isinstance(error, OSError) or claim.exists():
                self._retries.note(attempt.id, f"run {run.id} can't be passed to its runner yet: {error}")
                return
            text = f"it can't be started: {error}".replace("\n", " ")
            now = self._clock.now()
            with self._database.transaction():
                failure = Failure(FailureClass.INFRASTRUCTURE, text)
                transitions.failed(self._database, attempt.id, failure, now=now)
                if sweep.state is SweepState.ACTIVE:
                    sweeps.set_state(self._database, sweep.id, SweepState.PAUSED, now=now)
        self._forget(attempt)

    def _forget(self, attempt: Attempt) -> None:
        del self._waiting[attempt.id]
        self._retries.clear(attempt.id)

    def _hand_over_waiting(self) -> None:
        """Retry attempts that could not be passed on; those stopped meanwhile never reach the runner."""
        for attempt, gpu_uuids in list(self._waiting.values()):
            run = runs.get(self._database, attempt.run_id)
            if not run.is_live or run.attempts != attempt.number:
                self._forget(attempt)
            elif not self._retries.must_wait(attempt.id):
                stop = launching.stop_before_start(
                    self._placements.of(attempt), self._places.state_dir, attempt
                )
                if stop is not None:
                    transitions.stopped(self._database, run.id, by=stop.by, now=self._clock.now())
                    self._forget(attempt)
                else:
                    self._hand_over(attempt, gpu_uuids)

    def _learn_secrets(self, sweep: Sweep) -> None:
        try:
            agent = agent_of_sweep(self._places.state_dir, sweep)
            self._redaction.learn(required_secrets(agent), os.environ)
            providers = providers_of(sweep.conditions.models.gateway, self._places.config_file)
            self._redaction.learn([provider.key for provider in providers if provider.key], os.environ)
        except Problem as problem:
            self._log(f"the agent of sweep {sweep.id} can't be read", problem)


def _gpus_of_host(conditions: RunConditions) -> int:
    """Return how many of this host's GPUs a run takes; jobs of a batch system use those of its nodes."""
    return conditions.resources.gpus if conditions.placement == HERE else 0


class StartRamp:
    """Spaces out a sweep's starts; after a restart the time of the last start is read from the state."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._started_at: dict[str, float] = {}

    def may_start(self, sweep: Sweep, at_most: int) -> int:
        """Return how many runs of a sweep may start now, at most `at_most`."""
        if not sweep.spec.start_ramp_seconds:
            return at_most
        last = self._started_at.get(sweep.id)
        if last is None:
            last = self._started_at[sweep.id] = self._last_start(sweep.id)
        return min(at_most, int(self._clock.monotonic() - last >= sweep.spec.start_ramp_seconds))

    def note_start(self, sweep_id: str) -> None:
        """Record that a run of a sweep has been started."""
        self._started_at[sweep_id] = self._clock.monotonic()

    def _last_start(self, sweep_id: str) -> float:
        """Return the last start by the monotonic clock; now, if the wall clock was set back since."""
        started = runs.last_launch(self._database, sweep_id)
        since = math.inf if started is None else max(0.0, self._clock.now() - started)
        return self._clock.monotonic() - since


class Retrier:
    """Queues failed runs again in the sweeps that allow it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._seen_at: dict[int, float] = {}

    def step(self) -> None:
        """Queue the failed runs again that have waited long enough."""
        waiting: dict[int, float] = {}
        away = outages.unreachable(self._database)
        for run in runs.to_retry(self._database):
            waiting[run.id] = self._seen_at.get(run.id, self._clock.monotonic())
            needed = sweeps.get(self._database, run.sweep_id).spec.conditions.models.gateway if away else ()
            # The number of retries is limited: don't spend one while a needed provider is unreachable.
            if self._is_due(run, waiting[run.id]) and away.isdisjoint(needed):
                transitions.requeued(self._database, run.id, by=ENGINE, now=self._clock.now())
                del waiting[run.id]
        self._seen_at = waiting

    def _is_due(self, run: FailedRun, seen_at: float) -> bool:
        """Return whether a run has waited long enough since it failed, or was first seen if the clock was set back."""
        now = self._clock.now()
        waited = max(now - (run.ended_at or now), self._clock.monotonic() - seen_at)
        return waited >= RETRY_BACKOFF.seconds(run.failures)
