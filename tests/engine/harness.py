"""A real engine on a state of its own, and agents written on the spot, for tests that need the whole thing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mlebench_console import prepare_competition
from mlebench_console.engine import control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.demo_data import NOTICE, generate
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import ChosenRun, LaunchSweep, Request
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host import readings
from mlebench_console.environment.runner.process import containment
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import locks
from mlebench_console.foundation.fields import from_flat
from mlebench_console.state import database, events, runs
from mlebench_console.state.records import Attempt, Run

PATIENCE = 60.0
SLOTS = 10  # more than this machine may have processors: most agents of these tests only wait
COMPETITION = "spaceship-titanic"
SUBMIT = 'cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"'
WAIT_FOR_GO = 'while [ ! -e "$CODE_DIR/go" ]; do sleep 0.05; done'

Found = TypeVar("Found")


def eventually(
    look: Callable[[], Found], *, patience: float = PATIENCE, or_tell: Sequence[str] = ()
) -> Found:
    """Look until there is something to see, and return it; otherwise tell what is known of it."""
    give_up = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < give_up, f"what was waited for did not happen {or_tell or ''}"
        time.sleep(0.05)


def prepare_data(folder: Path) -> None:
    """Make a data directory in which one competition is prepared."""
    raw = folder / "generated"
    generate(COMPETITION, raw)
    (raw / NOTICE).unlink()  # or every launch would be warned of the demo's data
    prepare_competition(COMPETITION, data_dir=folder, raw=raw)


def until_released(lock: Path) -> None:
    """Wait until nobody holds a lock."""
    eventually(lambda: not locks.is_held(lock))


def shown(*chosen: Run, reroll: bool = False) -> tuple[ChosenRun, ...]:
    """Name runs in a request as they are here."""
    return tuple(ChosenRun(run.id, run.attempts, reroll) for run in chosen)


def launch_of(**values: Any) -> LaunchSweep:
    """Return the launch with these values, of itself, its specification and its conditions."""
    return from_flat(LaunchSweep, {"agents_dir": ""} | values)


class Harness:
    """Starts, kills and asks the engine of one test."""

    def __init__(self, places: Places, agents_dir: Path, empty_state: Path | None = None) -> None:
        """Prepare; `empty_state` saves the engine the half second that making one takes."""
        self.places = places
        self.agents_dir = agents_dir
        self._empty_state = empty_state

    def agent(self, name: str, script: str, *, extra: str = "") -> str:
        folder = self.agents_dir / name
        folder.mkdir(parents=True)
        (folder / "start.sh").write_text(f'echo start >> "$CODE_DIR/starts"\n{script}\n')
        (folder / "config.yaml").write_text(f"{name}:\n  start: {name}/start.sh\n{extra}")
        return name

    def start(self) -> None:
        if self._empty_state is not None and not self.places.state_dir.exists():
            self.places.state_dir.mkdir()
            shutil.copyfile(self._empty_state, self.places.state_dir / database.DATABASE_NAME)
        if not self.places.config_file.exists():
            self.places.config_file.write_text(f"[engine]\ncpus = {SLOTS}\n")
        control.ensure_running(self.places)

    def launch(self, agent: str, **arguments: Any) -> str:
        usual = {
            "agent_id": agent,
            "agents_dir": str(self.agents_dir),
            "competitions": (COMPETITION,),
            "seeds": 1,
            "time_limit_seconds": 120,
            "grace_seconds": 1,
            "grade_every_seconds": 0.5,
            "concurrency": 20,
            "cpus": 0.5,
        }
        sweep_id = self.ask(launch_of(**(usual | arguments))).sweep_id
        assert sweep_id is not None
        return sweep_id

    def ask(self, request: Request) -> control.Answer:
        return control.ask(self.places, request, wait_seconds=PATIENCE)

    def runs(self) -> list[Run]:
        state = database.open_for_reading(self.places.state_dir)
        try:
            return runs.of_all_sweeps(state)
        finally:
            state.close()

    def attempts(self, run: Run) -> list[Attempt]:
        state = database.open_for_reading(self.places.state_dir)
        try:
            return runs.attempts(state, run.id)
        finally:
            state.close()

    def folder(self, run: Run) -> Path:
        return self.places.state_dir / self.attempts(run)[-1].directory

    def assert_ended_once(self, run: Run) -> None:
        """What was killed meanwhile has launched nothing twice, and the end is told once."""
        assert [attempt.number for attempt in self.attempts(run)] == [1]
        assert (self.folder(run) / protocol.CODE / "starts").read_text() == "start\n"
        state = database.open_for_reading(self.places.state_dir)
        try:
            told = [event.kind for event in events.newest(state, run_id=run.id)]
        finally:
            state.close()
        assert sum(kind in ("run.finished", "run.failed", "run.stopped") for kind in told) == 1
        assert told.count("run.starting") == 1

    def log(self, run: Run) -> str:
        return (self.folder(run) / protocol.LOG).read_text(errors="replace")

    def all_in(self, *wanted: str) -> list[Run]:
        """Wait until every run is in one of the states."""

        def look() -> list[Run]:
            found = self.runs()
            return found if all(run.state in wanted for run in found) else []

        try:
            return eventually(look)
        except AssertionError as error:
            last = [
                f"run {run.id} {run.state} {run.failure_class or ''} {run.failure_text}"
                for run in self.runs()
            ]
            raise AssertionError(f"not all are {' or '.join(wanted)}:\n" + "\n".join(last)) from error

    def ended(self) -> list[Run]:
        return self.all_in("finished", "failed", "stopped")

    def until_started(self) -> list[Run]:
        """Wait until every agent has really begun."""
        found = self.all_in("running")
        for run in found:
            eventually((self.folder(run) / protocol.CODE / "starts").exists)
        return found

    def go(self, run: Run) -> None:
        (self.folder(run) / protocol.CODE / "go").touch()

    def kill_engine(self) -> None:
        kill_holder(lock_path(self.places))

    def kill_runner(self) -> None:
        kill_holder(self.places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK)

    def kill_workers(self) -> int:
        """Kill the engine's worker processes."""
        engine = int(lock_path(self.places).read_text())
        workers = [
            child.pid
            for child in process_tree().get(engine, ())
            if b"mlebench_console.foundation.workers" in Path(f"/proc/{child.pid}/cmdline").read_bytes()
        ]
        for worker in workers:
            os.killpg(worker, signal.SIGKILL)  # with what wraps it
        return len(workers)

    def kill_shim(self, run: Run) -> None:
        kill_holder(self.folder(run) / protocol.LOCK)

    def kill_job(self, run: Run) -> None:
        """Kill whoever looks after an attempt on its node, with all that looks after that."""
        wanted = str(self.folder(run).resolve()).encode()
        for entry in Path("/proc").glob("[0-9]*"):
            line = entry / "cmdline"
            with suppress(FileNotFoundError, ProcessLookupError):
                if b"--once" in line.read_bytes() and wanted in line.read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    def close(self) -> None:
        """End everything that this test has started, and wait until it is gone."""
        for lock in (lock_path(self.places), *self.places.state_dir.glob("runner/runner.lock")):
            _signal_holder(lock, signal.SIGTERM)
            until_released(lock)
        for lock in self.places.state_dir.glob("runs/*/*/*/*/shim.lock"):
            _signal_holder(lock, signal.SIGKILL)
            until_released(lock)
            readings.kill(readings.processes_of_attempt(lock.parent))
            name = protocol.read(lock.parent / protocol.ORDER, Order).token
            eventually(partial(containment.end_leftovers, name))


def kill_holder(lock: Path) -> None:
    """Kill -9 whoever holds a lock, and wait until the kernel has let go of it."""
    assert locks.is_held(lock)
    _signal_holder(lock, signal.SIGKILL)
    until_released(lock)


def _signal_holder(lock: Path, number: signal.Signals) -> None:
    if locks.is_held(lock):
        with suppress(ProcessLookupError):
            os.kill(int(lock.read_text()), number)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
