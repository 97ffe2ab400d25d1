"""Create the sweep of a launch request; everything is checked before anything is created."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import fields, replace

from competitions import registry
from competitions.model import edition_named
from competitions.task import refuse_excluded
from engine import datasets as preparation
from engine.agents import Agent, start_command
from engine.options.sweep import Launch, check_name, impossible
from engine.places import Places
from engine.settings import EngineSettings
from engine.space import gigabytes
from engine.sweeps.checks import refuse_container_options, require_containers
from environment.runner import protocol, runtimes
from foundation.problems import DataProblem, UsageProblem
from state import experiments, sweeps
from state.database import Database
from state.records import Sweep, SweepSpec

_NOT_IN_A_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


def create(
    database: Database, launch: Launch, agent: Agent, places: Places, settings: EngineSettings, *, now: float
) -> Sweep:
    """Check a launch, then create its sweep, its runs, and the preparations of datasets that it lacks.

    Raises:
        Problem: it can't be done, for the first reason found; nothing has been created then.
    """
    for problem in impossible(launch):
        raise problem
    spec = launch.spec
    _check_size(spec, settings)
    start_command(agent, os.environ)
    if runtimes.resolve(spec.runtime) == protocol.DOCKER:
        require_containers(spec, agent)
    else:
        refuse_container_options(spec, agent)
    missing = _missing_datasets(spec, places)
    with database.transaction():
        sweep = sweeps.create(
            database,
            sweep_id=_identifier(database, launch),
            name=launch.name or spec.agent_id,
            spec=spec,
            agent_folder=str(agent.folder),
            agent_version=agent.version,
            concurrency=launch.concurrency,
            priority=launch.priority,
            note=launch.note,
            now=now,
        )
        edition = edition_named(spec.edition)
        for competition_id in spec.competitions:
            if competition_id in missing:
                preparation.request(database, missing[competition_id], now=now)
            else:
                preparation.record_prepared(database, competition_id, edition, now=now)
        if launch.experiment:
            experiments.assign(database, launch.experiment, sweep.id, now=now)
    return sweep


def _missing_datasets(spec: SweepSpec, places: Places) -> dict[str, preparation.Plan]:
    edition = edition_named(spec.edition)
    missing: dict[str, preparation.Plan] = {}
    for competition_id in spec.competitions:
        competition = registry.get(competition_id)
        registry.load_task(competition)
        refuse_excluded(competition, edition)
        if preparation.is_ready(competition_id, edition, places.data_dir):
            continue
        if not (spec.prepare_missing or spec.demo or spec.raw_dir):
            raise DataProblem(
                f"the dataset of {competition_id} is not prepared",
                "",
                f"Prepare it first ('mlebench-console prepare -c {competition_id}'), or launch with --prepare.",
            )
        missing[competition_id] = preparation.plan(
            competition_id, edition, places.data_dir, raw_dir=spec.raw_dir, demo=spec.demo
        )
    return missing


def _check_size(spec: SweepSpec, settings: EngineSettings) -> None:
    """Refuse a run that is larger than what the engine has for all runs: it would never start."""
    if spec.cpus > settings.cpus:
        raise UsageProblem(
            f"a run that takes {spec.cpus:g} CPUs never starts here",
            f"this engine has {settings.cpus:g} slots",
            "Ask for fewer, or set cpus in the [engine] table of config.toml.",
        )
    if (spec.memory_bytes or 0) > settings.memory_bytes:
        raise UsageProblem(
            f"a run that may take {gigabytes(spec.memory_bytes or 0)} of memory never starts here",
            f"this engine has {gigabytes(settings.memory_bytes)} for all runs",
            "Ask for less, or set memory_gb in the [engine] table of config.toml.",
        )


def _identifier(database: Database, launch: Launch) -> str:
    """Return the given name, or the agent's with the next free number."""
    if launch.name:
        return check_name(launch.name)
    slug = _NOT_IN_A_SLUG.sub("-", launch.spec.agent_id).strip("-.") or "sweep"
    number = 1
    while sweeps.find(database, f"{slug}-{number}") is not None:
        number += 1
    return f"{slug}-{number}"


def launch_of(sweep: Sweep, experiments: Sequence[str]) -> Launch:
    """Return the launch that would create this sweep again, as it is scheduled now."""
    return Launch(
        sweep.spec,
        name=sweep.id,
        concurrency=sweep.concurrency,
        priority=sweep.priority,
        experiment=experiments[0] if experiments else "",
        note=sweep.note,
    )


def refuse_another(launch: Launch, agent_version: str, there: Sweep) -> None:
    """Refuse a launch whose name is taken, unless it asks for exactly the sweep of that name.

    Raises:
        UsageProblem: the sweep of that name is another.
    """
    asked = launch.spec
    # Whether data had to be prepared for it says nothing of what runs.
    kept = replace(there.spec, prepare_missing=asked.prepare_missing, raw_dir=asked.raw_dir)
    differing = [
        field.name for field in fields(SweepSpec) if getattr(asked, field.name) != getattr(kept, field.name)
    ]
    if agent_version != there.agent_version:
        differing.append("the agent's files")
    if differing:
        raise UsageProblem(
            f"there is already a sweep '{there.id}'",
            f"it differs in {', '.join(differing[:3])}",
            "Choose another name.",
        )
