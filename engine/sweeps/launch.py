"""Create the sweep of a launch request; everything is checked before anything is created."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mlebench_console.competitions.model import edition_named
from mlebench_console.engine import datasets as preparation
from mlebench_console.engine.checks import Check
from mlebench_console.engine.options.sweep import check_name
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import experiments, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Sweep
from mlebench_console.state.usage import budgets
from mlebench_console.state.usage.budgets import BudgetScope

_NOT_IN_A_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


def create(
    database: Database,
    launch: LaunchSweep,
    places: Places,
    checks: Iterable[Check],
    *,
    agent_version: str,
    now: float,
) -> Sweep:
    """Create the sweep of a launch, its runs, and the preparations of missing datasets, if all `checks` are good.

    `agent_version` is that of the snapshot taken of the agent's folder.

    Raises:
        Problem: the first reason why it can't be done; nothing is created then.
    """
    for check in checks:
        if not check.allows_work:
            raise UsageProblem(check.text, "", check.next_step)
    spec, edition = launch.spec, edition_named(launch.spec.conditions.edition)
    missing = {
        name: preparation.plan(name, edition, places.data_dir, preparation.options_of(spec))
        for name in spec.competitions
        if not preparation.is_ready(name, edition, places.data_dir)
    }
    with database.transaction():
        sweep = sweeps.create(
            database,
            sweep_id=_identifier(database, launch),
            name=launch.name or spec.agent_id,
            spec=spec,
            agent_version=agent_version,
            concurrency=launch.concurrency,
            priority=launch.priority,
            note=launch.note,
            now=now,
        )
        for competition_id in spec.competitions:
            if competition_id in missing:
                preparation.request(database, missing[competition_id], now=now)
            else:
                preparation.record_prepared(database, competition_id, edition, places.data_dir, now=now)
        runs.mark_demo(database, sweep.id)
        if launch.sweep_budget.is_limited:
            budgets.set_limits(database, BudgetScope.SWEEP, sweep.id, launch.sweep_budget, now=now)
        if launch.experiment:
            experiments.assign(database, launch.experiment, sweep.id, now=now)
    return sweep


def _identifier(database: Database, launch: LaunchSweep) -> str:
    """Return the given name, or the agent's with the next free number."""
    if launch.name:
        return check_name(launch.name)
    slug = _NOT_IN_A_SLUG.sub("-", launch.spec.agent_id).strip("-.") or "sweep"
    number = 1
    while sweeps.find(database, f"{slug}-{number}") is not None:
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
