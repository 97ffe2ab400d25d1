"""A state that is removed and made anew at the same place belongs to a new engine and a new runner alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from mlebench_console.engine.control.status import lock_path
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.locks import FileLock
from tests.engine.harness import PATIENCE, Harness, eventually


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
        engine = FileLock(state_dir / protocol.ENGINE_LOCK)
        assert engine.acquire()  # a new engine is there, for which a runner would stay
        try:
            assert runner.wait(PATIENCE) == 0
        finally:
            runner.kill()
            engine.release()
