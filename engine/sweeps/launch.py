"""Launch sweeps: check what a launch needs, keep its agent's files, then create the sweep with its runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from mlebench_console.competitions.model import edition_named
from mlebench_console.engine import datasets as preparation
from mlebench_console.engine.agent_snapshots import AgentSnapshots, agent_of
from mlebench_console.engine.agents import wants_obfuscated
from mlebench_console.engine.checks import Check
from mlebench_console.engine.options.sweep import check_name
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import Answer, LaunchSweep
from mlebench_console.engine.sweeps.checks import (
    HostCapacity,
    check_launch,
    refuse_another,
    refuse_other_data,
)
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import experiments, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Sweep
from mlebench_console.state.usage import budgets
from mlebench_console.state.usage.budgets import BudgetScope

_CHECKED_AT_ONCE = 4
_NOT_IN_A_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


class SweepLaunches:
    """Handles requests to launch; checks run on other threads, because Docker may answer late or never."""

    def __init__(
        self,
        database: Database,
        places: Places,
        clock: Clock,
        agents: AgentSnapshots,
        capacity: Callable[[], HostCapacity],
    ) -> None:
        self._database = database
        self._places = places
        self._clock = clock
        self._agents = agents
        self._capacity = capacity
        self._workers = ThreadPoolExecutor(_CHECKED_AT_ONCE, thread_name_prefix="checks")
        self._started: list[tuple[LaunchSweep, Future[list[Check]]]] = []

    @property
    def is_busy(self) -> bool:
        """Whether a launch waits for its checks, or for the snapshot of its agent."""
        return bool(self._started) or self._agents.is_taking

    def launch(self, launch: LaunchSweep, _by: str) -> Answer | None:
        """Create the sweep of a launch, within the transaction of the answer; None while it must be called again.

        Raises:
            Problem: the first reason why it can't be done; nothing is created then.
        """
        own = self._places.data_dir
        refuse_other_data(launch.spec, own)
        # An engine has one data directory: the state identifies datasets by competition and edition alone.
        launch = replace(launch, spec=replace(launch.spec, data_dir=str(own)))
        answer = None
        is_waiting = False
        try:
            checks = self._checks_of(launch)
            answer = None if checks is None else self._create(launch, checks)
            is_waiting = answer is None
        finally:
            if not is_waiting:  # the next call runs the checks again
                self._started = [(other, found) for other, found in self._started if other != launch]
        return answer

    def _checks_of(self, launch: LaunchSweep) -> list[Check] | None:
        """Return the checks of a launch; None while they run."""
        for other, checks in self._started:
            if other == launch:
                return checks.result() if checks.done() else None
        found = check_launch(launch, self._places, os.environ, self._capacity())
        self._started.append((launch, self._workers.submit(lambda: list(found))))
        return None

    def _create(self, launch: LaunchSweep, checks: Sequence[Check]) -> Answer | None:
        """Create the sweep, its runs, and the preparations of missing datasets, if all checks are good."""
        agent = agent_of(launch.spec)
        # Obfuscation is a condition of the row, whether a flag or the agent's own setting requests it.
        if wants_obfuscated(agent):
            conditions = replace(launch.spec.conditions, obfuscated=True)
            launch = replace(launch, spec=replace(launch.spec, conditions=conditions))
        version = self._agents.take(agent.folder)
        if version is None:
            return None
        database, data_dir, now = self._database, self._places.data_dir, self._clock.now()
        existing = sweeps.find(database, launch.name) if launch.name else None
        if existing is not None:
            refuse_another(launch, version, existing)
            return Answer(
                f"sweep {existing.id} exists already and is the same; nothing was launched", existing.id
            )
        for check in checks:
            if not check.allows_work:
                raise UsageProblem(check.text, "", check.next_step)
        spec, edition = launch.spec, edition_named(launch.spec.conditions.edition)
        missing = {
            name: preparation.plan(name, edition, data_dir, preparation.options_of(spec))
            for name in spec.competitions
            if not preparation.is_ready(name, edition, data_dir)
        }
        sweep = sweeps.create(
            database,
            sweep_id=self._identifier(launch),
            name=launch.name or spec.agent_id,
            spec=spec,
            agent_version=version,
            concurrency=launch.concurrency,
            priority=launch.priority,
            note=launch.note,
            now=now,
        )
        for competition_id in spec.competitions:
            if competition_id in missing:
                preparation.request(database, missing[competition_id], now=now)
            else:
                preparation.record_prepared(database, competition_id, edition, data_dir, now=now)
        runs.mark_demo(database, sweep.id)
        if launch.sweep_budget.is_limited:
            budgets.set_limits(database, BudgetScope.SWEEP, sweep.id, launch.sweep_budget, now=now)
        if launch.experiment:
            experiments.assign(database, launch.experiment, sweep.id, now=now)
        return Answer(f"sweep {sweep.id} is launched with {plural(launch.run_count, 'run')}", sweep.id)

    def _identifier(self, launch: LaunchSweep) -> str:
        """Return the given name, or the agent's with the next free number."""
        if launch.name:
            return check_name(launch.name)
        slug = _NOT_IN_A_SLUG.sub("-", launch.spec.agent_id).strip("-.") or "sweep"
        number = 1
        while sweeps.find(self._database, f"{slug}-{number}") is not None:
            number += 1
        return f"{slug}-{number}"


def launch_of(sweep: Sweep, experiments: Sequence[str], budget: Budget) -> LaunchSweep:
    """Return the launch that would create this sweep again, as it is scheduled now."""
    return LaunchSweep(
        spec=sweep.spec,
        name=sweep.id,
        concurrency=sweep.concurrency,
        priority=sweep.priority,
        experiment=experiments[0] if experiments else "",
        note=sweep.note,
        sweep_budget=budget,
    )
