"""A launch costs the same however many runs are queued: counted in steps of the database, not in time."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from mlebench_console.engine.agent_snapshots import take
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places, own_agents_folder
from mlebench_console.engine.runs.scheduling import GpuPool, Retrier
from mlebench_console.engine.runs.starting import Starter
from mlebench_console.engine.settings import EngineSettings
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.state import database, datasets, runs, transitions
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import DatasetState
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage.samples import Samples
from tests.clocks import HandClock
from tests.conditions import spec_of
from tests.engine.harness import COMPETITION
from tests.engine.states import new_sweep

_STEP = 20


def cost_of_a_step(folder: Path, queued: int) -> tuple[float, int]:
    """Steps of SQLite's machine, and statements, for each launch of a second look at the queue."""
    folder.mkdir()
    state = database.open_for_writing(folder)
    errors: list[BaseException | None] = []
    spec = spec_of("dummy", "", (COMPETITION,), queued, 60.0, runtime="plain", cpus=0.001)
    version = take(own_agents_folder() / "dummy", folder)
    for name in ("s", "other"):
        new_sweep(state, spec, name=name, concurrency=queued, agent_version=version)
    datasets.set_state(state, COMPETITION, "v1", DatasetState.PREPARED, now=1.0)
    places = Places(folder / "config.toml", folder / "data", folder)
    starter = Starter(
        state,
        places,
        Placements(places, HandClock(), lambda _text, error: errors.append(error)),
        HandClock(),
        lambda _text, error: errors.append(error),
        TextRedactor(),
        GpuPool(tuple, HandClock()),
        EngineSettings(cpus=1000.0, memory_gb=1.0),
        Samples(folder, writable=True),
    )
    starter.step()
    before = runs.queued_count(state)
    steps = 0
    statements: list[str] = []

    def count() -> int:
        nonlocal steps
        steps += _STEP
        return 0

    connection = state._connection
    connection.set_progress_handler(count, _STEP)
    connection.set_trace_callback(statements.append)
    starter.step()
    connection.set_progress_handler(None, 0)
    connection.set_trace_callback(None)
    launched = before - runs.queued_count(state)
    state.close()
    assert errors == []
    assert launched > 0
    return steps / launched, len(statements) // launched


def test_a_launch_costs_no_more_with_ten_thousand_queued_than_with_a_hundred(tmp_path: Path) -> None:
    short_steps, short_statements = cost_of_a_step(tmp_path / "short", 50)
    long_steps, long_statements = cost_of_a_step(tmp_path / "long", 5000)
    assert long_statements == short_statements
    assert long_steps == pytest.approx(short_steps, rel=0.2)


def calls_of_an_idle_look(folder: Path, finished: int) -> int:
    """Function calls, in Python and out of it, of a look at so many sweeps with nothing to do."""
    folder.mkdir()
    state = database.open_for_writing(folder)
    clock = HandClock()
    spec = spec_of("dummy", "", (COMPETITION,), 3, 60.0, runtime="plain", retries=2)
    for number in range(finished):
        new_sweep(state, spec, name=f"s{number}")
    for run in runs.of_all_sweeps(state):
        for attempt in range(3):
            launched = transitions.launch(
                state, run.id, directory=f"{run.id}-{attempt}", runtime="plain", now=1.0
            )
            failure = Failure(FailureClass.INFRASTRUCTURE, "the network")
            transitions.failed(state, launched.id, failure, now=1.0)
            if attempt < 2:
                transitions.requeued(state, run.id, by="engine", now=1.0)
    places = Places(folder / "config.toml", folder / "data", folder)
    pool = GpuPool(tuple, clock)
    placements = Placements(places, clock, lambda _text, _error: None)
    starter = Starter(
        state,
        places,
        placements,
        clock,
        lambda _text, _error: None,
        TextRedactor(),
        pool,
        EngineSettings(),
        Samples(folder, writable=True),
    )
    retrier = Retrier(state, clock)
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    for step in (starter.step, retrier.step):
        step()
        sys.setprofile(count)
        try:
            step()
        finally:
            sys.setprofile(before)
    state.close()
    return calls


def test_finished_sweeps_cost_an_idle_engine_nothing(tmp_path: Path) -> None:
    few = calls_of_an_idle_look(tmp_path / "few", 1)
    assert calls_of_an_idle_look(tmp_path / "many", 40) == few
