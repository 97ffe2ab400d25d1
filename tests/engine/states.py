"""Sweeps in a state that no engine runs on, of which a test says only what matters to it."""

from __future__ import annotations

from mlebench_console.state import sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Sweep, SweepSpec


def new_sweep(
    state: Database,
    spec: SweepSpec,
    *,
    name: str = "s",
    concurrency: int = 1,
    now: float = 1.0,
    agent_version: str = "1",
) -> Sweep:
    return sweeps.create(
        state,
        sweep_id=name,
        name=name,
        spec=spec,
        agent_version=agent_version,
        concurrency=concurrency,
        now=now,
    )
