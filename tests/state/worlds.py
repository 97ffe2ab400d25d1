"""Small states to test against."""

from __future__ import annotations

from mlebench_console.state import sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Sweep
from tests.conditions import spec_of


def create_sweep(
    database: Database,
    sweep_id: str = "dummy-1",
    *,
    competitions: tuple[str, ...] = ("alpha", "beta"),
    seeds: int = 2,
    now: float = 1.0,
) -> Sweep:
    return sweeps.create(
        database,
        sweep_id=sweep_id,
        name=sweep_id,
        spec=spec_of("dummy", "/agents", competitions, seeds, time_limit_seconds=60),
        agent_version="1",
        concurrency=2,
        now=now,
    )
