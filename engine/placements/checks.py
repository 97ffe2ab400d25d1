"""What is asked of Slurm before a sweep is launched on it: what it would refuse, and what would wait for ever."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from engine.placements.commands import SlurmCommands
from engine.placements.slurm import job_options, job_seconds
from engine.settings import SlurmProfile
from foundation.problems import UsageProblem
from state.records import SweepSpec


def sbatch_check(spec: SweepSpec, profile: SlurmProfile) -> str:
    """Return what Slurm says of a job of a sweep, which is not submitted.

    Raises:
        UsageProblem, EnvironmentProblem: it would be refused or wait for ever, or Slurm does not answer.
    """
    commands = SlurmCommands(os.environ)
    needed = job_seconds(spec, profile)
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
        return commands.try_out(script, job_options(spec, "mlebench-check", "", Path(folder), profile))
