"""Start runs: record each attempt in the state, write its directory with its order, then pass it to its placement.

Which runs start, and when, is decided in `engine.runs.scheduling`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mlebench_console.competitions import descriptions, registry
from mlebench_console.competitions.model import edition_named
from mlebench_console.engine.agent_snapshots import agent_of_sweep
from mlebench_console.engine.agents import (
    Agent,
    required_secrets,
    start_arguments,
    start_command,
    start_variables,
    wants_obfuscated,
)
from mlebench_console.engine.images.building import GRADER_IMAGE, images_of_runs
from mlebench_console.engine.images.exporting import find_exported
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places, images_folder
from mlebench_console.engine.providers import keys_of, model_prices, new_token, providers_of, without_keys
from mlebench_console.engine.runs.budgets import SharedBudgets
from mlebench_console.engine.runs.scheduling import (
    Demand,
    Free,
    GpuPool,
    StartRamp,
    choose,
    lease,
)
from mlebench_console.engine.settings import EngineSettings
from mlebench_console.engine.space import free_bytes
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.gateway.prices import prices_given
from mlebench_console.environment.runner import layout, protocol, secrets
from mlebench_console.environment.runner.process import runtimes
from mlebench_console.environment.runner.protocol import Order, Stop
from mlebench_console.foundation import files
from mlebench_console.foundation.backoff import Retries
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import HERE, RunConditions
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem
from mlebench_console.state import runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, RunState, SweepState
from mlebench_console.state.records import Attempt, Run, Sweep
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import outages
from mlebench_console.state.usage.samples import Samples, UnusableSamples

_MOST_STARTS_A_STEP = 8
_DISK_SECONDS = 10.0
_MOST_UNKNOWN = 1_000_000
# Marks the agent's own secrets among the gateway's keys; environment variables have no spaces in their names.
_OF_THE_AGENT = "of the agent"


class ForeignDirectory(DataProblem):
    """The directory of an attempt contains the order of another attempt, so nothing in it can be used."""


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
        samples: Samples,
    ) -> None:
        self._database = database
        self._places = places
        self._placements = placements
        self._clock = clock
        self._log = log
        self._redaction = redaction
        self._gpus = gpus
        self._settings = settings
        self._samples = samples
        self._disk_at = -math.inf
        self.disk_for_runs: int | None = None
        """The room on the runs' disk without what live runs may still take; None while no run has such a limit."""
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
                order = read_order(self._places.state_dir, attempt)
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
        unknown = [order.conditions.resources for order in self._placements.here.unknown]
        self.slots_used = sum(sweep.conditions.resources.cpus * live.get(sweep.id, 0) for sweep in of_host)
        self.slots_used += sum(resources.cpus for resources in unknown)
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
        ) + sum(resources.memory_bytes or 0 for resources in unknown)
        free = Free(
            self._settings.cpus - self.slots_used,
            self._settings.memory_bytes - memory_used,
            self._free_gpus() if any(demand.resources.gpus for demand in demands) else {},
            self._free_disk(of_host, demands),
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
        return Demand(
            sweep.id,
            sweep.priority,
            sweep.concurrency,
            live,
            tuple(run.id for run in ready),
            replace(sweep.conditions.resources, gpus=_gpus_of_host(sweep.conditions)),
            (sweep.conditions.disk_limit_bytes or 0) if sweep.conditions.placement == HERE else 0,
        )

    def _free_disk(self, of_host: Iterable[Sweep], demands: Iterable[Demand]) -> float:
        """Return the room on the runs' disk without what live runs may still take within their limits."""
        if not any(demand.disk_bytes for demand in demands):
            self.disk_for_runs = None
            return math.inf
        if self.disk_for_runs is None or self._clock.monotonic() >= self._disk_at:
            limits = {sweep.id: sweep.conditions.disk_limit_bytes or 0 for sweep in of_host}
            unknown = self._placements.here.unknown
            promised = sum(order.conditions.disk_limit_bytes or 0 for order in unknown)
            for attempt_id, (_, sweep_id) in runs.occupying_attempts(self._database).items():
                if limit := limits.get(sweep_id):
                    held = None
                    with suppress(UnusableSamples):  # intake reports this problem
                        held = self._samples.most_disk(attempt_id)
                    promised += max(0, limit - (held or 0))
            self.disk_for_runs = free_bytes(self._places.runs_dir) - promised
            self._disk_at = self._clock.monotonic() + _DISK_SECONDS
        return self.disk_for_runs

    def _free_gpus(self) -> dict[str, float]:
        # The state's own attempts have numbers from 1.
        unknown = dict(
            enumerate((order for order in self._placements.here.unknown if order.gpu_uuids), -_MOST_UNKNOWN)
        )
        for number, order in unknown.items():
            self._gpus.hold(number, order.gpu_uuids, order.conditions.resources.gpu_share)
        return self._gpus.free({*runs.occupying_attempts(self._database), *unknown})

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
        self._disk_at = -math.inf  # now it has room of its own
        self._ramp.note_start(sweep.id)
        self._learn_secrets(sweep)
        self._hand_over(attempt, gpu_uuids)

    def _hand_over(self, attempt: Attempt, gpu_uuids: tuple[str, ...]) -> None:
        """Pass an attempt to its runner; after an error of the disk it keeps its GPUs and is tried again.

        Any other error fails the run and pauses its sweep, because the next runs would fail the same way. An attempt
        whose agent may already be running is never failed here.
        """
        # First, as the state may be unusable now: what waits is tried again before anything else starts.
        self._waiting[attempt.id] = attempt, gpu_uuids
        run = runs.get(self._database, attempt.run_id)
        sweep = sweeps.get(self._database, run.sweep_id)
        self._gpus.hold(attempt.id, gpu_uuids, sweep.conditions.resources.gpu_share)
        try:
            if _gpus_of_host(sweep.conditions) and not gpu_uuids:
                raise EnvironmentProblem("its GPUs are not free any more", "other runs use them")
            self._pass_on(sweep, run, attempt, gpu_uuids)
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

    def _pass_on(self, sweep: Sweep, run: Run, attempt: Attempt, gpu_uuids: tuple[str, ...]) -> None:
        """Write the directory of an attempt and pass it to its placement; doing so again is harmless.

        Raises:
            ForeignDirectory: its directory belongs to another attempt.
            Problem: the agent or one of its secrets is missing.
            OSError: its directory can't be written.
        """
        state_dir, config_file = self._places.state_dir, self._places.config_file
        placement, folder = self._placements.of(attempt), state_dir / attempt.directory
        ordered = read_order(state_dir, attempt)
        if not (folder / protocol.CLAIM).exists():
            agent = agent_of_sweep(state_dir, sweep)
            if ordered is not None:
                providers = ordered.providers
            else:
                served = providers_of(sweep.conditions.models.gateway, config_file)
                providers = _shared(served, placement.share_of_rates(attempt.placement))
            token = (ordered.model_token if ordered is not None else "") or new_token()
            keys = keys_of(providers, os.environ)
            launch = start_command(agent, without_keys(providers, os.environ, token))
            protocol.make_folders(folder)
            order = self._order(sweep, run, attempt, agent, gpu_uuids)
            # The agent's own addresses of models would bypass the gateway, or lead nowhere.
            addresses = {name for provider in providers for name in layout.model_addresses(provider, 0)}
            if providers:
                kept = tuple((name, value) for name, value in order.variables if name not in addresses)
                order = replace(order, variables=kept)
                own_prices = model_prices(config_file).own
                prices = tuple((name, prices_given(price)) for name, price in own_prices.items())
                order = replace(order, providers=providers, model_token=token, model_prices=prices)
                if order.conditions.models.record_calls:
                    # The gateway keeps the agent's secrets out of recordings too, not only out of logs.
                    keys |= {
                        f"{_OF_THE_AGENT} {number}": value for number, value in enumerate(launch.secrets)
                    }
                secrets.leave_keys(folder, keys)
            if order.secret:
                variables = {
                    name: value for name, value in launch.environment.items() if name not in addresses
                }
                own = layout.with_hidden_arguments(variables, launch.arguments)
                secrets.leave(folder, secrets.SecretLaunch(own, launch.secrets))
            if order.conditions.obfuscated:
                _write_description(folder, order)
            if ordered is None:
                files.remove_partials(folder)  # no other process writes there before the order exists
                if (notice := self.budgets.notice_for(sweep.id)) is not None:
                    protocol.write(folder / protocol.SHARED_BUDGET, notice)
                protocol.write(folder / protocol.ORDER, order)
                files.sync_directory(folder)
        placement.place(attempt)

    def _order(
        self, sweep: Sweep, run: Run, attempt: Attempt, agent: Agent, gpu_uuids: tuple[str, ...]
    ) -> Order:
        """Return the order of an attempt; it contains the names of secrets, not their values.

        Raises:
            EnvironmentProblem: its exported image is missing, or was made from other files.
        """
        spec, conditions = sweep.spec, sweep.conditions
        competition = registry.get(run.competition_id)
        image_labels: tuple[tuple[str, str], ...] = ()
        grader_labels: tuple[tuple[str, str], ...] = ()
        image_file = None
        uses_image_file = runtimes.needs_image_file(
            conditions.runtime, has_image=agent.dockerfile is not None
        )
        # Only where an image is used: they name the files that it is built from, whose hash takes a tenth of a second.
        if uses_image_file or attempt.runtime == protocol.DOCKER:
            own_image, grader_image = images_of_runs(agent, kept=True)
            image_labels, grader_labels = own_image.labels, grader_image.labels
            if uses_image_file:
                image_file = find_exported(own_image, images_folder(self._places))
        return Order(
            version=protocol.VERSION,
            attempt_id=attempt.id,
            sweep_id=run.sweep_id,
            competition_id=run.competition_id,
            seed=run.seed,
            attempt=attempt.number,
            token=attempt.token,
            agent_id=agent.id,
            # Resolved for nodes that see only the shared part of the state directory.
            agent_folder=str(agent.folder.resolve()),
            agent_version=sweep.agent_version,
            start=str(agent.start_below_folder),
            arguments=start_arguments(agent),
            variables=start_variables(agent),
            secret=bool(required_secrets(agent)),
            prepared_dir=str(
                dataset_folder(competition, spec.data_dir, edition_named(conditions.edition)).prepared
            ),
            python_prefix=sys.prefix,
            conditions=replace(
                conditions,
                runtime=attempt.runtime,
                obfuscated=conditions.obfuscated or wants_obfuscated(agent),
            ),
            image=agent.image_name,
            grader_image=GRADER_IMAGE,
            image_labels=image_labels,
            grader_labels=grader_labels,
            gpu_uuids=gpu_uuids,
            privileged=agent.privileged,
            agents_dir=spec.agents_dir,
            own_competition=str(competition.folder) if registry.is_own(competition) else "",
            image_file=image_file,
        )

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
                folder = self._places.state_dir / attempt.directory
                # A runner that may know it ends it itself.
                is_known = (folder / protocol.CLAIM).exists() or self._placements.of(attempt).is_placed(
                    attempt
                )
                stop = None if is_known else protocol.read_if_there(folder / protocol.STOP, Stop)
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


def _shared(providers: tuple[ModelProvider, ...], share: float) -> tuple[ModelProvider, ...]:
    """Return the providers with a share of their rate limits."""
    return tuple(
        replace(
            provider,
            requests_per_minute=provider.requests_per_minute and provider.requests_per_minute * share,
            tokens_per_minute=provider.tokens_per_minute and provider.tokens_per_minute * share,
        )
        for provider in providers
    )


def read_order(state_dir: Path, attempt: Attempt) -> Order | None:
    """Read the order of an attempt in its directory; None while there is none.

    Raises:
        ForeignDirectory: the order there is that of another attempt.
        DataProblem: it can't be read.
    """
    order = protocol.read_if_there(state_dir / attempt.directory / protocol.ORDER, Order)
    if order is not None and (order.token, order.attempt_id) != (attempt.token, attempt.id):
        raise ForeignDirectory(
            f"{attempt.directory} holds another attempt",
            f"its {protocol.ORDER} is the order of {order.token}, not of {attempt.token}",
            "Stop the run, then relaunch it.",
        )
    return order


def _write_description(folder: Path, order: Order) -> None:
    prepared = Path(order.prepared_dir)
    if not (
        prepared / "public" / protocol.DESCRIPTION
    ).is_file():  # a file can be mounted only over an existing one
        raise DataProblem(
            f"{prepared} has no description.md",
            "so an obfuscated one can't take its place",
            f"Prepare it again: mlebench-console prepare -c {order.competition_id}",
        )
    text = descriptions.obfuscated_description(
        registry.get(order.competition_id), edition_named(order.conditions.edition)
    )
    files.write_text(folder / protocol.DESCRIPTION, text)


def ask_to_stop(state_dir: Path, attempt: Attempt, stop: Stop) -> None:
    """Request that the runner ends an attempt; a second request does not change who requested it.

    Raises:
        ForeignDirectory: its directory belongs to another attempt, so there is nothing to end.
    """
    read_order(state_dir, attempt)
    path = state_dir / attempt.directory / protocol.STOP
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        protocol.write(path, stop)
