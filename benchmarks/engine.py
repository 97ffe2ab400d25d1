"""The engine under load: the cost of watching two hundred idle runs, and of a long queue at each launch."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import Comparison
from mlebench_console import prepare_competition
from mlebench_console.engine import agent_snapshots, control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.demo_data import generate
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places, own_agents_folder
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.engine.runs.scheduling import GpuPool
from mlebench_console.engine.runs.starting import Starter
from mlebench_console.engine.settings import EngineSettings
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host import readings
from mlebench_console.foundation import locks
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.conditions import Resources, RunConditions
from mlebench_console.state import database, datasets, runs, sweeps
from mlebench_console.state.lifecycle import RunState
from mlebench_console.state.records import DatasetState, SweepSpec
from mlebench_console.state.usage.samples import Samples

_COMPETITION = "spaceship-titanic"
_LIVE = 200
_SETTLE_SECONDS = 5.0
# Long enough that everything that is measured now and then, such as disk use, is measured at least once.
_WATCHED_SECONDS = 75.0
_START_PATIENCE = 600.0
_SHORT_QUEUE = 100
_LONG_QUEUE = 10_000
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(rounds: int) -> Iterator[Comparison]:
    """Measure both."""
    yield _queue(rounds)
    yield _watching()


def _queue(rounds: int) -> Comparison:
    """Seconds a launch takes, from the decision to the runner's inbox, in turn with a short and a long queue."""
    with _starter(_SHORT_QUEUE) as (short, launched_short), _starter(_LONG_QUEUE) as (long, launched_long):
        taken: dict[int, list[float]] = {_SHORT_QUEUE: [], _LONG_QUEUE: []}
        for number in range(min(rounds, 10) + 1):
            for length, starter, launched in (
                (_SHORT_QUEUE, short, launched_short),
                (_LONG_QUEUE, long, launched_long),
            ):
                before, began = launched(), time.perf_counter()
                starter.step()
                seconds = (time.perf_counter() - began) / (launched() - before)
                if number:
                    taken[length].append(seconds)
    return Comparison(
        "queue",
        f"a launch with {_LONG_QUEUE:,} queued",
        statistics.median(taken[_LONG_QUEUE]),
        f"a launch with {_SHORT_QUEUE} queued",
        statistics.median(taken[_SHORT_QUEUE]),
        promise=1.5,
    )


@contextmanager
def _starter(queued: int) -> Iterator[tuple[Starter, Callable[[], int]]]:
    """A starter over a state of its own with so many runs queued."""
    folder = Path(tempfile.mkdtemp(prefix="mlebench-queue-"))
    state = database.open_for_writing(folder)
    clock = SystemClock()
    conditions = RunConditions(60.0, runtime="plain", resources=Resources(cpus=1e-3))
    spec = SweepSpec("dummy", "", (_COMPETITION,), queued, conditions)
    sweeps.create(
        state,
        sweep_id="s",
        name="s",
        spec=spec,
        agent_version=agent_snapshots.take(own_agents_folder() / "dummy", folder),
        concurrency=queued,
        now=clock.now(),
    )
    datasets.set_state(state, _COMPETITION, spec.conditions.edition, DatasetState.PREPARED, now=clock.now())
    places = Places(folder / "config.toml", folder / "data", folder)
    pool = GpuPool(tuple, clock)
    settings = EngineSettings(cpus=float(queued), memory_gb=1.0)
    try:
        yield (
            Starter(
                state,
                places,
                Placements(places, clock, _raise),
                clock,
                _raise,
                TextRedactor(),
                pool,
                settings,
                Samples(folder, writable=True),
            ),
            lambda: queued - runs.queued_count(state),
        )
    finally:
        state.close()
        shutil.rmtree(folder)


def _watching() -> Comparison:
    """Processor seconds of engine and runner while nothing happens in many live runs."""
    folder = Path(tempfile.mkdtemp(prefix="mlebench-load-"))
    places = Places(folder / "config.toml", folder / "data", folder / "state")
    try:
        _prepare(places)
        control.ensure_running(places)
        _launch_idle(places, folder / "agents")
        engine, runner = _holders(places)
        time.sleep(_SETTLE_SECONDS)
        before, began = cpu_seconds(engine) + cpu_seconds(runner), time.monotonic()
        time.sleep(_WATCHED_SECONDS)
        used, lasted = cpu_seconds(engine) + cpu_seconds(runner) - before, time.monotonic() - began
    finally:
        _end(places)
        shutil.rmtree(folder)
    return Comparison(
        "watching", f"engine + runner, {_LIVE} idle runs (CPU)", used, "one core", lasted, promise=0.25
    )


def _prepare(places: Places) -> None:
    raw = places.data_dir / "generated"
    generate(_COMPETITION, raw)
    prepare_competition(_COMPETITION, data_dir=places.data_dir, raw=raw)


def _launch_idle(places: Places, agents: Path) -> None:
    agent = agents / "idle"
    agent.mkdir(parents=True)
    (agent / "start.sh").write_text("exec sleep 100000\n")
    (agent / "config.yaml").write_text("idle:\n  start: idle/start.sh\n")
    spec = SweepSpec(
        "idle", str(agents), (_COMPETITION,), _LIVE, RunConditions(1e5, resources=Resources(cpus=1e-3))
    )
    control.ask(places, LaunchSweep(spec=spec, concurrency=_LIVE))
    state = database.open_for_reading(places.state_dir)
    try:
        give_up = time.monotonic() + _START_PATIENCE
        while any(run.state is not RunState.RUNNING for run in runs.of_all_sweeps(state)):
            if time.monotonic() > give_up:
                raise TimeoutError(f"{_LIVE} runs did not start within {_START_PATIENCE:.0f} s")
            time.sleep(1)
    finally:
        state.close()


def _holders(places: Places) -> tuple[int, int]:
    runner = places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
    return int(lock_path(places).read_text()), int(runner.read_text())


def cpu_seconds(pid: int) -> float:
    """Return how long processors have worked for a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _end(places: Places) -> None:
    """Kill everything at once, since these agents produce nothing."""
    control.stop(places)
    runner = places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
    attempts = list(places.runs_dir.glob("*/*/*/*"))
    for lock in (runner, *(attempt / protocol.LOCK for attempt in attempts)):
        if locks.is_held(lock):
            os.kill(int(lock.read_text()), signal.SIGKILL)
            while locks.is_held(lock):
                time.sleep(0.01)
    for attempt in attempts:
        readings.kill(readings.processes_of_attempt(attempt))


def _raise(_text: str, error: BaseException | None) -> None:
    assert error is not None  # a starter logs errors alone
    raise error
