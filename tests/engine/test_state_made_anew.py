"""A state that is removed and made anew at the same place belongs to a new engine and a new runner alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench_console.engine import control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import locks
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import StateProblem
from mlebench_console.state import database
from tests.engine.harness import PATIENCE, SLOTS, SUBMIT, WAIT_FOR_GO, Harness, eventually


def ended(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def remove(state_dir: Path) -> None:
    """Remove a state at once, in which somebody may be writing."""
    shutil.rmtree(state_dir.rename(state_dir.with_name("removed")), ignore_errors=True)


def test_an_engine_ends_when_its_state_is_replaced(harness: Harness) -> None:
    harness.start()
    old = int(lock_path(harness.places).read_text())
    remove(harness.places.state_dir)
    harness.start()
    assert int(lock_path(harness.places).read_text()) != old
    eventually(lambda: ended(old))


def test_a_runner_ends_when_its_state_is_replaced(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    command = [sys.executable, "-m", "mlebench_console.environment.runner", f"--state-dir={state_dir}"]
    with subprocess.Popen(command) as runner:
        lock = state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
        eventually(lambda: lock.exists() and lock.read_text())
        remove(state_dir)
        protocol.inbox(state_dir).mkdir(parents=True)
        engine = FileLock(state_dir / locks.ENGINE_LOCK)
        assert engine.acquire()  # a new engine is there, for which a runner would stay
        try:
            assert runner.wait(PATIENCE) == 0
        finally:
            runner.kill()
            engine.release()


def remove_database(state_dir: Path) -> None:
    for path in state_dir.glob(f"{database.DATABASE_NAME}*"):
        path.unlink()


def test_a_database_that_is_removed_under_its_engine_is_told_within_five_seconds(harness: Harness) -> None:
    harness.start()
    assert control.status(harness.places).problem == ""
    remove_database(harness.places.state_dir)
    eventually(lambda: "was removed or replaced" in control.status(harness.places).problem, patience=5)
    with pytest.raises(StateProblem, match="was removed or replaced while its engine uses it"):
        database.open_for_reading(harness.places.state_dir)
    with pytest.raises(StateProblem, match="was removed or replaced while its engine uses it"):
        harness.launch("anything")
    for arguments in (["status"], ["runs", "list"], ["sweep", "list"], ["events"]):
        program = Path(sys.executable).with_name("mlebench-console")
        command = [str(program), f"--state-dir={harness.places.state_dir}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "was removed or replaced" in " ".join((done.stdout + done.stderr).split()), arguments


def test_an_engine_never_stops_live_runs_that_its_state_does_not_know(harness: Harness) -> None:
    harness.agent("worker", f"{SUBMIT}; {WAIT_FOR_GO}")
    harness.start()
    harness.launch("worker", seeds=2, cpus=SLOTS / 4)
    folders = [harness.folder(run) for run in harness.until_started()]
    harness.kill_engine()
    remove_database(harness.places.state_dir)
    harness.start()
    eventually(lambda: "2 attempts that this state does not know" in control.status(harness.places).problem)
    assert control.status(harness.places).slots_used == SLOTS / 2  # what they were given stays taken
    harness.launch("worker", seeds=3, cpus=SLOTS / 4, name="later")
    eventually(lambda: sum(run.is_live for run in harness.runs()) == 2)
    for folder in folders:
        assert not (folder / protocol.STOP).exists() and not (folder / protocol.EXIT).exists()
        (folder / protocol.CODE / "go").touch()
    eventually(lambda: all((folder / protocol.EXIT).exists() for folder in folders))
    assert all(protocol.read(folder / protocol.EXIT, Ending).reason == EndReason.EXITED for folder in folders)
    eventually(lambda: control.status(harness.places).problem == "")
    eventually(lambda: sum(run.is_live for run in harness.runs()) == 3)  # by now there is room for the third
    for run in harness.until_started():
        harness.go(run)
    harness.ended()
