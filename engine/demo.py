"""The demo: two small sweeps on synthetic data, with a state and an engine of their own."""

from __future__ import annotations

import shutil
from contextlib import closing

from mlebench_console.engine.control import RefusedRequest, ask, ensure_running, stop
from mlebench_console.engine.demo_data import DEMO_COMPETITIONS
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.foundation.conditions import Resources, RunConditions
from mlebench_console.foundation.problems import StateProblem
from mlebench_console.state import database, sweeps
from mlebench_console.state.records import SweepSpec

DUMMY = "demo-dummy"
BASELINE = "demo-baseline"
_SEEDS = 3
_ASK_SECONDS = 60.0
# Half a slot for the dummy, which mostly waits: on two cores two baselines run, or one beside two dummies.
_SWEEPS = ((DUMMY, "dummy", 2, 0.5), (BASELINE, "baseline/demo", 2, 1.0))


def demo_places(places: Places) -> Places:
    """Return the demo's places, separate from the user's state and data."""
    state_dir = places.state_dir / "demo"
    return Places(config_file=places.config_file, data_dir=state_dir / "data", state_dir=state_dir)


def ensure_demo(places: Places) -> None:
    """Start the demo's engine and launch its sweeps, or continue an existing demo.

    Args:
        places: the user's own places.
    """
    demo = demo_places(places)
    ensure_running(demo)
    for name, agent_id, concurrency, cpus in _SWEEPS:
        if not _exists(demo, name):
            _launch(demo, name, agent_id, concurrency, cpus)


def reset_demo(places: Places) -> None:
    """Stop the demo's runs and engine, and remove its files.

    Args:
        places: the user's own places.
    """
    demo = demo_places(places)
    if not demo.state_dir.exists():
        return
    if database.exists(demo.state_dir):
        ensure_running(demo)
        stop(demo, with_runs=True)
    shutil.rmtree(demo.state_dir)


def _exists(demo: Places, name: str) -> bool:
    with closing(database.open_for_reading(demo.state_dir)) as state:
        return sweeps.find(state, name) is not None


def _launch(demo: Places, name: str, agent_id: str, concurrency: int, cpus: float) -> None:
    spec = SweepSpec(
        agent_id=agent_id,
        agents_dir="",
        competitions=DEMO_COMPETITIONS,
        seeds=_SEEDS,
        conditions=RunConditions(
            300.0, grace_seconds=5.0, grade_every_seconds=2.0, resources=Resources(cpus=cpus)
        ),
        demo=True,
    )
    note = "synthetic data, real cut-offs: a demonstration, no result"
    request = LaunchSweep(spec=spec, name=name, concurrency=concurrency, experiment=name, note=note)
    try:
        ask(demo, request, wait_seconds=_ASK_SECONDS)
    except RefusedRequest as refused:
        if not _exists(demo, name):  # otherwise another console has launched it meanwhile
            raise StateProblem("the demo can't be launched", str(refused).replace("\n", " ")) from refused
