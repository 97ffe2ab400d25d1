"""Whether a launch makes sense in itself, before anything of this host is looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.runs.launching import edition_named
from engine.sweeps.launch import Launch
from environment.runner import runtime
from foundation.problems import UsageProblem

_MOST_SEEDS = 1000


def refuse_nonsense(launch: Launch) -> None:
    """Let pass what makes sense.

    Raises:
        UsageProblem: something can't be meant; the first thing that is found.
    """
    for problem in nonsense(launch):
        raise problem


def nonsense(launch: Launch) -> Iterator[UsageProblem]:
    """Everything in a launch that can't be meant."""
    spec = launch.spec
    for name, value in (
        ("time_limit_seconds", spec.time_limit_seconds),
        ("cpus", spec.cpus),
        ("grade_every_seconds", spec.grade_every_seconds),
        ("concurrency", launch.concurrency),
        ("seeds", spec.seeds),
        ("runs_per_gpu", spec.runs_per_gpu),
    ):
        if not math.isfinite(value) or value <= 0:
            yield UsageProblem(f"'{name}' must be above 0, not {value:g}")
    for name, value in (
        ("grace_seconds", spec.grace_seconds),
        ("start_ramp_seconds", spec.start_ramp_seconds),
    ):
        if not math.isfinite(value) or value < 0:
            yield UsageProblem(f"'{name}' must be 0 or more, not {value:g}")
    if spec.retries < 0 or spec.gpus < -1:
        yield UsageProblem("'retries' and 'gpus' are counts")
    if spec.seeds > _MOST_SEEDS:
        yield UsageProblem(f"'seeds' must be at most {_MOST_SEEDS}, not {spec.seeds}")
    if spec.network not in runtime.NETWORKS:
        yield UsageProblem(
            f"there is no network policy '{spec.network}'", "", f"Known are: {', '.join(runtime.NETWORKS)}."
        )
    try:
        edition_named(spec.edition)
    except UsageProblem as problem:
        yield problem
