"""Checks of placements for commands and consoles: whether jobs would be refused or wait for ever, and free capacity."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import edition_named
from mlebench_console.engine.checks import Check, Health, failed
from mlebench_console.engine.layout import dataset_folder, is_prepared
from mlebench_console.engine.placements.commands import (
    JobEstimate,
    NoAccounting,
    Partition,
    SlurmAway,
    SlurmCommands,
    SlurmRefuses,
)
from mlebench_console.engine.placements.sbatch import (
    gres_option,
    job_options,
    job_prefix,
    job_seconds,
    placement_of,
    profile_named,
    runtime_on_nodes,
)
from mlebench_console.engine.placements.staging import DIRECT, require_squashfs, staging_seconds
from mlebench_console.engine.places import Places, shared_folder
from mlebench_console.engine.settings import SlurmProfile, slurm_profiles
from mlebench_console.engine.space import existing
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process import runtimes
from mlebench_console.foundation.conditions import HERE, Resources, RunConditions
from mlebench_console.foundation.problems import EnvironmentProblem, Problem, UsageProblem
from mlebench_console.state import database, runs
from mlebench_console.state.database import NETWORK_FILE_SYSTEMS, file_system_of
from mlebench_console.state.records import Attempt, SweepSpec

# A job name that no other job has, because jobs wait for others of the same name.
_TRIED_NAME = "mlebench-check"
_ANSWER_SECONDS = 30.0
_SMALL = RunConditions(300.0, resources=Resources(memory_bytes=256 << 20))
_SMALL_WITH_GPU = replace(_SMALL, resources=replace(_SMALL.resources, gpus=1))


@dataclass(frozen=True)
class PlacementFacts:
    """The current state of a placement.

    Attributes:
        most: how many runs may be there at once; None where this host's resources decide.
        running, waiting: how many of our live runs there run or wait.
        room: how many more runs it accepts; None where this host's resources decide.
        runtime: the runtime of runs there by default.
        answers: whether it can be used now.
        problem: why it can't be used.
        next_step: what to do about that.
    """

    placement: str
    partition: str = ""
    account: str = ""
    qos: str = ""
    most: int | None = None
    running: int = 0
    waiting: int = 0
    room: int | None = None
    runtime: str = ""
    answers: bool = False
    problem: str = ""
    next_step: str = ""


def staging_check(spec: SweepSpec, profile: SlurmProfile) -> float:
    """Return how long staging the largest prepared dataset of a sweep may take.

    Raises:
        Problem: one of them can't be staged.
    """
    longest = 0.0
    for competition in (registry.get(name) for name in spec.competitions):
        folder = dataset_folder(competition, spec.data_dir, edition_named(spec.conditions.edition))
        if is_prepared(competition, folder):
            longest = max(longest, staging_seconds(folder.prepared, profile))
            if profile.staging == protocol.SQUASHFS:
                require_squashfs(folder.prepared)
    return longest


def estimate(spec: SweepSpec, profile: SlurmProfile) -> JobEstimate:
    """Return Slurm's estimate for a job of a sweep, which is not submitted; answers are cached for half a minute.

    Raises:
        Problem: it would be refused or wait for ever, its data can't be staged, or Slurm does not answer.
    """
    found = _estimate_or_problem(spec, profile, int(time.monotonic() / _ANSWER_SECONDS))
    if isinstance(found, Problem):
        raise found
    return found


@lru_cache(maxsize=16)
def _estimate_or_problem(spec: SweepSpec, profile: SlurmProfile, _period: int) -> JobEstimate | Problem:
    try:
        return _estimate(spec, profile)
    except Problem as problem:
        return problem


def _estimate(spec: SweepSpec, profile: SlurmProfile) -> JobEstimate:
    commands = SlurmCommands(os.environ)
    staging = staging_check(spec, profile)
    needed = job_seconds(spec.conditions, profile, staging)
    wanted = _partitions(commands, profile)
    limit = _longest(wanted)
    if limit is not None and limit < needed:
        where = f"partition {profile.partition}" if profile.partition else "the default partition"
        raise UsageProblem(
            f"a job of {_span(needed)} does not fit",
            f"{where} ends jobs after {_span(limit)}",
            "Give a lower --hours, or another partition in its table of config.toml.",
        )
    _require_account(commands, profile)
    found = commands.try_out(job_options_of(spec.conditions, profile, staging))
    if wanted and not any(one.has_nodes for one in wanted.values()):
        found = replace(found, message="jobs would wait: no node of the partition takes any now")
    partition = found.partition or profile.partition
    return replace(found, partition=partition, job_seconds=needed, limit_seconds=limit)


def job_options_of(conditions: RunConditions, profile: SlurmProfile, staging: float) -> list[str]:
    """Return the options of sbatch for a job that is only tested."""
    return job_options(
        conditions, _TRIED_NAME, "", Path(tempfile.gettempdir()), profile, staging_seconds=staging
    )


def known_placements(places: Places) -> list[PlacementFacts]:
    """Return the state of this host and of every profile, with one query to Slurm.

    Raises:
        UsageProblem: config.toml can't be read.
    """
    profiles = slurm_profiles(places.config_file)
    live: list[Attempt] = []
    if database.exists(places.state_dir):
        with closing(database.open_for_reading(places.state_dir)) as state:
            live = runs.live_attempts(state)
    problem, step, partitions = "", "", frozenset[str]()
    try:
        partitions = frozenset(SlurmCommands(os.environ).partitions())
    except EnvironmentProblem as away:
        problem, step = away.cause, away.next_step
    here = [attempt for attempt in live if attempt.placement == HERE]
    found = [
        PlacementFacts(HERE, running=len(here), runtime=runtimes.resolve(protocol.PROCESS), answers=True)
    ]
    for name, profile in profiles.items():
        placement = placement_of(name)
        ours = [attempt for attempt in live if attempt.placement == placement]
        waiting = sum(attempt.is_in_queue for attempt in ours)
        room = max(0, profile.max_jobs - len(ours))
        try:
            profile_named(placement, places.config_file)
            unknown = [] if problem else sorted(set(profile.partition.split(",")) - partitions)
            missing = f"there is no partition '{unknown[0]}'" if unknown else ""
            wrong = problem or (
                missing if profile.partition else missing and "no partition is the default one"
            )
            then = step
        except UsageProblem as refused:
            wrong, then = refused.cause, refused.next_step
        found.append(
            PlacementFacts(
                *(placement, profile.partition, profile.account, profile.qos),
                *(profile.max_jobs, len(ours) - waiting, waiting, room),
                *(runtime_on_nodes(protocol.PROCESS), not wrong, wrong, then),
            )
        )
    return found


def check_placement(places: Places, name: str) -> Iterator[Check]:
    """Check everything about a placement that can be checked without submitting a job."""
    if name == HERE:
        yield Check(Health.OK, f"runs are processes or containers of {socket.gethostname()}: see 'doctor'")
        return
    try:
        profile = profile_named(name, places.config_file)
        commands = SlurmCommands(os.environ)
        yield Check(Health.OK, f"Slurm's commands are here: {commands.version()}")
        ours = [job for job in commands.jobs() if job.name.startswith(job_prefix(places.state_dir))]
    except Problem as problem:
        yield failed(problem)
        return
    waiting = sum(job.state == "PENDING" for job in ours)
    running = sum(job.state == "RUNNING" for job in ours)
    yield Check(Health.OK, f"Slurm answers; of this state {running} jobs run and {waiting} wait")
    for check in (_check_partition, _check_nodes, _check_account, _check_records, _check_job):
        try:
            yield from check(commands, profile)
        except Problem as problem:
            yield failed(problem)
    yield from _check_folders(places, commands, profile)
    if profile.staging != DIRECT:
        yield staging_tools(profile)


def staging_tools(profile: SlurmProfile) -> Check:
    """Check whether this host has the tools for a profile's staging."""
    how = f"public data come to nodes' own disks ({profile.staging})"
    if profile.staging == protocol.SQUASHFS and shutil.which("mksquashfs") is None:
        text = f"{how}, and mksquashfs is not installed here: only datasets that have an image can be used"
        return Check(Health.WARN, text, "Install squashfs-tools.")
    return Check(Health.OK, how)


def _check_partition(commands: SlurmCommands, profile: SlurmProfile) -> Iterator[Check]:
    wanted = _partitions(commands, profile)
    if not wanted and not profile.partition:
        yield Check(Health.FAIL, "no partition is this cluster's default", "Name one: partition = ...")
        return
    missing = [name for name in profile.partitions if name not in wanted]
    if missing:
        known = ", ".join(sorted(name for name in commands.partitions() if name))
        yield Check(Health.FAIL, f"there is no partition '{missing[0]}'", f"Choose one of {known}.")
    for name, partition in wanted.items():
        what = f"partition {name}" if name else "the default partition"
        limit = partition.limit_seconds
        ends = "has no time limit" if limit is None else f"ends jobs after {_span(limit)}"
        if partition.has_nodes:
            yield Check(Health.OK, f"{what} {ends}")
        else:
            yield Check(Health.WARN, f"{what} {ends}, and no node of it takes jobs now", "They would wait.")


def _check_nodes(commands: SlurmCommands, profile: SlurmProfile) -> Iterator[Check]:
    found = commands.nodes(profile.partitions)
    if not found:
        return  # the partition does not exist
    away = [node for node in found if node.is_away]
    gpus = sum(node.gpus for node in found)
    cpus = sum(node.cpus or 0 for node in found)
    text = f"{len(found)} nodes with {cpus} processors and {gpus} GPUs, {len(away)} of them away"
    yield Check(Health.OK, text)
    if not gpus and profile.gres == SlurmProfile().gres:
        return
    one = gres_option(1, profile)
    try:
        commands.try_out(job_options_of(_SMALL_WITH_GPU, profile, 0.0))
    except SlurmRefuses as problem:
        step = "Write gres in its table as 'scontrol show node' names it; sweeps without GPUs need none."
        yield Check(Health.WARN, f"no GPU can be had as {one}: {problem.why}", step)
    else:
        yield Check(Health.OK, f"a GPU can be had as {one}")


def _check_account(commands: SlurmCommands, profile: SlurmProfile) -> Iterator[Check]:
    known = commands.accounts()
    if known is None:
        if profile.account or profile.qos:
            text = "this Slurm keeps no accounts: account and qos can't be checked, and may mean nothing"
            yield Check(Health.WARN, text, "Take them out, unless the cluster's people name them.")
        return
    _require_account(commands, profile)
    named = profile.account or "the default one"
    yield Check(Health.OK, f"you may charge {named}" + (f" with qos {profile.qos}" if profile.qos else ""))


def _check_records(commands: SlurmCommands, _profile: SlurmProfile) -> Iterator[Check]:
    try:
        commands.ended([_TRIED_NAME], "now-1hours")
    except NoAccounting as problem:
        text = f"Slurm keeps no records of jobs ({problem.why})"
        yield Check(Health.OK, f"{text}: how a job ended is known from its own report and squeue")
    else:
        yield Check(Health.OK, "Slurm keeps records of jobs (sacct)")


def _check_job(commands: SlurmCommands, profile: SlurmProfile) -> Iterator[Check]:
    limit = _longest(_partitions(commands, profile))
    needed = job_seconds(_SMALL, profile, 0.0)
    if limit is not None and limit < needed:
        text = f"even a run of {_span(_SMALL.time_limit_seconds)} needs a job of {needed / 60:.0f} minutes"
        yield Check(Health.FAIL, f"{text}, which its partition ends before", "Name another partition.")
        return
    message = commands.try_out(job_options_of(_SMALL, profile, 0.0)).message
    yield Check(Health.OK, f"Slurm would take a small job: {message or 'it does not say when'}")


def _check_folders(places: Places, commands: SlurmCommands, profile: SlurmProfile) -> Iterator[Check]:
    """Check the folders that jobs need; whether nodes see them is known only for shared file systems."""
    try:
        elsewhere = {node.name for node in commands.nodes(profile.partitions)}
    except SlurmAway:
        elsewhere = set()
    is_one_box = elsewhere <= {socket.gethostname().partition(".")[0], "localhost"}
    for what, folder, writes in (
        ("runs", shared_folder(places) or places.runs_dir, True),
        ("data", places.data_dir, False),
        ("Python", Path(sys.prefix), False),
    ):
        base = existing(folder)
        kind = file_system_of(base)
        needed = os.W_OK | os.X_OK if writes else os.R_OK | os.X_OK
        if not os.access(base, needed):
            yield Check(
                Health.FAIL,
                f"{what}: {folder} can't be {'written' if writes else 'read'}",
                "Change its permissions.",
            )
        elif is_one_box or kind in NETWORK_FILE_SYSTEMS:
            yield Check(Health.OK, f"{what}: {folder} on {kind}")
        else:
            step = "Put it where every node sees it at the same path; ignore this where they do."
            yield Check(Health.WARN, f"{what}: {folder} is on {kind}, which nodes may not see", step)


def _span(seconds: float) -> str:
    return f"{seconds / 3600:.3g} h" if seconds >= 3600 else f"{seconds / 60:.3g} minutes"


def _partitions(commands: SlurmCommands, profile: SlurmProfile) -> dict[str, Partition]:
    known = commands.partitions()
    return {name: known[name] for name in profile.partition.split(",") if name in known}


def _longest(partitions: dict[str, Partition]) -> float | None:
    """Return the longest limit, as a job may run in any of the partitions; None without a limit."""
    limits = [one.limit_seconds for one in partitions.values()]
    return None if None in limits else max((limit for limit in limits if limit is not None), default=None)


def _require_account(commands: SlurmCommands, profile: SlurmProfile) -> None:
    if not profile.account and not profile.qos:
        return
    known = commands.accounts()
    if known is None:
        return
    yours = ", ".join(sorted(known)) or "none"
    if profile.account and profile.account not in known:
        raise UsageProblem(f"you have no account '{profile.account}' at this Slurm", f"yours are: {yours}")
    charged = [known[profile.account]] if profile.account else list(known.values())
    allowed = frozenset().union(*charged)
    if profile.qos and profile.qos not in allowed:
        raise UsageProblem(
            f"you have no qos '{profile.qos}' at this Slurm",
            f"yours are: {', '.join(sorted(allowed)) or 'none'}",
        )
