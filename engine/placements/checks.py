"""What is asked of Slurm before a sweep is launched on it: what it would refuse, and what would wait for ever."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from competitions import registry
from competitions.model import edition_named
from engine.layout import dataset_folder, is_prepared
from engine.placements.commands import SlurmCommands
from engine.placements.slurm import job_options, job_seconds
from engine.placements.staging import require_squashfs, staging_seconds
from engine.settings import SlurmProfile
from environment.runner import protocol
from foundation.problems import UsageProblem
from state.records import SweepSpec


def staging_check(spec: SweepSpec, profile: SlurmProfile) -> float:
    """Return how long the largest dataset of a sweep that is prepared may take to a node.

    Raises:
        Problem: one of them can't be brought there.
    """
    longest = 0.0
    for competition in (registry.get(name) for name in spec.competitions):
        folder = dataset_folder(competition, spec.data_dir, edition_named(spec.edition))
        if is_prepared(competition, folder):
            longest = max(longest, staging_seconds(folder.prepared, profile))
            if profile.staging == protocol.SQUASHFS:
                require_squashfs(folder.prepared)
    return longest


def sbatch_check(spec: SweepSpec, profile: SlurmProfile, staging: float) -> str:
    """Return what Slurm says of a job of a sweep, which is not submitted; its data may take `staging` seconds to come.

    Raises:
        UsageProblem, EnvironmentProblem: it would be refused or wait for ever, or Slurm does not answer.
    """
    commands = SlurmCommands(os.environ)
    needed = job_seconds(spec, profile, staging)
    known = commands.partitions()
    wanted = {name: known[name] for name in profile.partition.split(",") if name in known}
    for name, partition in wanted.items():
        limit = partition.limit_seconds
        if limit is not None and limit < needed:
            where = f"partition {name}" if name else "the default partition"
            raise UsageProblem(
                f"a job of {needed / 3600:.3g} h does not fit",
                f"{where} ends jobs after {limit / 3600:.3g} h",
                "Give a lower --hours, or another partition in its table of config.toml.",
            )
    if wanted and not any(partition.has_nodes for partition in wanted.values()):
        return "jobs would wait: no node of the partition takes any now"
    accounts = commands.accounts() if profile.account else None
    if accounts is not None and profile.account not in accounts:
        yours = ", ".join(sorted(accounts)) or "none"
        raise UsageProblem(f"you have no account '{profile.account}' at this Slurm", f"yours are: {yours}")
    with tempfile.TemporaryDirectory(prefix="mlebench-check-") as folder:
        script = Path(folder) / "job.sh"
        script.write_text("#!/bin/bash\n")
        # With the name of a job that nobody has, since it waits for others of its name.
        return commands.try_out(
            script,
            job_options(spec, "mlebench-check", "", Path(folder), profile, staging_seconds=staging),
        )
