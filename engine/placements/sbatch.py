"""What jobs are submitted with: the profile of a placement in config.toml, sbatch's options and the job's script."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlebench_console.engine.placements.commands import output_option
from mlebench_console.engine.places import identity_of
from mlebench_console.engine.settings import SlurmProfile, slurm_profiles
from mlebench_console.environment.container import output
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.conditions import HERE, RunConditions
from mlebench_console.foundation.problems import UsageProblem

SLURM = "slurm"
_DEFAULT = "default"
# The memory of a job beyond its agent's: for runner, shim and validation server.
_OWN_MEMORY_BYTES = 1 << 30
_SIGNAL_SECONDS = 60.0  # Slurm may send a signal this much too early
_SHORTEST_SIGNAL = 60
# Options that the engine needs to name, find, start and end jobs; jobs of other clusters are not in squeue's answer.
_OWN_OPTIONS = frozenset(
    {
        *("job-name", "output", "error", "open-mode", "requeue", "no-requeue", "export", "export-file"),
        *("signal", "dependency", "array", "cluster", "clusters", "chdir", "parsable", "test-only"),
        *("wait", "wrap", "time"),
    }
)
_OWN_LETTERS = ("-J", "-o", "-e", "-d", "-a", "-M", "-D", "-W", "-t")


def profile_named(placement: str, config_file: Path) -> SlurmProfile:
    """Return the profile of a placement: `default` for `slurm`, NAME for `slurm:NAME`.

    Raises:
        UsageProblem: there is no such placement, or its options have one that the engine sets.
    """
    kind, _, name = placement.partition(":")
    profiles = slurm_profiles(config_file)
    found = profiles.get(name or _DEFAULT) if kind == SLURM else None
    if found is None:
        known = (HERE, *map(placement_of, profiles))
        raise UsageProblem(
            f"there is no placement '{placement}'",
            "",
            f"Choose one of {', '.join(known)}, or add a table [slurm.NAME] to {config_file}.",
        )
    for option in found.options:
        given = option.partition("=")[0].strip()
        if given.lstrip("-") in _OWN_OPTIONS or given[:2] in _OWN_LETTERS:
            raise UsageProblem(
                f"{config_file}: [{SLURM}.{name or _DEFAULT}] options can't have '{option}'",
                "the engine gives that option itself",
                "Take it out.",
            )
    return found


def placement_of(profile: str) -> str:
    """Return the name of the placement of a profile."""
    return SLURM if profile == _DEFAULT else f"{SLURM}:{profile}"


def runtime_on_nodes(wanted: str) -> str:
    """Return the runtime of the protocol on nodes for a sweep's runtime.

    Raises:
        UsageProblem: it needs a daemon, or does not exist.
    """
    if wanted == protocol.PROCESS:
        return protocol.BUBBLEWRAP
    if wanted in protocol.RUNTIMES and wanted != protocol.DOCKER:
        return wanted
    known = ", ".join(name for name in protocol.RUNTIMES if name != protocol.DOCKER)
    raise UsageProblem(f"jobs of Slurm can't have the runtime '{wanted}'", "", f"Choose one of {known}.")


def job_prefix(state_dir: Path) -> str:
    """Return the prefix of the names of all jobs of a state, which no other state's jobs have."""
    return f"mlebench-{identity_of(state_dir)}-"


def job_seconds(conditions: RunConditions, profile: SlurmProfile, staging_seconds: float) -> float:
    """Return the time limit of a job: staging, its agent's limit, twice the grace, cleaning up, and the slack."""
    own = (
        conditions.time_limit_seconds
        + 2 * conditions.grace_seconds
        + output.TIDY_SECONDS
        + 2 * _SIGNAL_SECONDS
    )
    return staging_seconds + own + profile.slack_minutes * 60


def gres_option(gpus: int, profile: SlurmProfile) -> str:
    """Return a profile's `--gres` value for a number of GPUs; empty for none.

    Raises:
        UsageProblem: the profile can't request them.
    """
    if not gpus:
        return ""
    if gpus < 0:
        raise UsageProblem(
            "a job can't ask for all GPUs of a node", "how many that are is not known", "Give --gpus."
        )
    if profile.gres.count("{n}") != 1 or profile.gres.startswith("mps"):
        raise UsageProblem(
            f"the gres '{profile.gres}' can't be asked for",
            "MPS lets runs disturb each other" if profile.gres.startswith("mps") else "it has no {n}",
            "Write it in the profile as gpu:{n}, gpu:a100:{n} or shard:{n}.",
        )
    return profile.gres.replace("{n}", str(gpus))


def job_options(
    conditions: RunConditions,
    name: str,
    comment: str,
    folder: Path,
    profile: SlurmProfile,
    *,
    staging_seconds: float = 0.0,
) -> list[str]:
    """Return the options of sbatch for an attempt."""
    resources = conditions.resources
    memory = None if resources.memory_bytes is None else resources.memory_bytes + _OWN_MEMORY_BYTES
    before_end = max(_SHORTEST_SIGNAL, math.ceil(conditions.grace_seconds + _SIGNAL_SECONDS))
    return given_options(
        {
            "job-name": name,
            "comment": comment,
            "chdir": str(folder),
            "output": output_option(folder / protocol.JOB_LOG),
            "open-mode": "append",
            # Two jobs of one attempt, after a submission with an unknown result, never run at the same time.
            "dependency": "singleton",
            "signal": f"B:TERM@{before_end}",
            "time": str(math.ceil(job_seconds(conditions, profile, staging_seconds) / 60)),
            "cpus-per-task": str(math.ceil(resources.cpus)),
            "mem": "" if memory is None else f"{math.ceil(memory / (1 << 20))}M",
            "gres": gres_option(resources.gpus, profile),
            "exclude": profile.exclude,
        },
        profile,
    )


def given_options(own: Mapping[str, str], profile: SlurmProfile) -> list[str]:
    """Return a job's own options of sbatch, and those that all jobs of a profile have; empty ones are left out."""
    shared = {
        # The job gets nothing of the environment here, which contains secrets.
        "export": "NIL",
        "nodes": "1",
        "ntasks": "1",
        "partition": profile.partition,
        "account": profile.account,
        "qos": profile.qos,
        "constraint": profile.constraint,
        "licenses": profile.licences,
    }
    options = {name: value for name, value in {**shared, **own}.items() if value}
    given = [f"--{name}={value}" for name, value in options.items() if name not in profile.leave_out]
    return [*given, "--no-requeue", *profile.options]


def job_script(folder: Path, order: Order, profile: SlurmProfile) -> str:
    """Return the script of a job that runs an attempt."""
    arguments = ["--once", str(folder), "--job", f"--silent-seconds={profile.silent_seconds:g}"]
    variables = ""
    if profile.proxy:  # for its model gateway, not for its agent
        address = shlex.quote(profile.proxy)
        variables = f"export HTTP_PROXY={address} HTTPS_PROXY={address} NO_PROXY=localhost,127.0.0.1\n"
    module = "mlebench_console.environment.runner"
    return module_script(module, arguments, profile, python_prefix=order.python_prefix, variables=variables)


def module_script(
    module: str,
    arguments: Sequence[str],
    profile: SlurmProfile,
    *,
    python_prefix: str = sys.prefix,
    variables: str = "",
) -> str:
    """Return the script of a job, which replaces itself with a module of ours, so that signals reach it."""
    command = shlex.join([f"{python_prefix}/bin/python", "-I", "-m", module, *arguments])
    scratch = shlex.quote(profile.scratch) if profile.scratch else '"${TMPDIR:-/tmp}"'
    path = shlex.quote(os.environ.get("PATH", os.defpath))
    return f"#!/bin/bash\nexport PATH={path} LANG=C.UTF-8\n{variables}exec {command} --scratch={scratch}\n"
