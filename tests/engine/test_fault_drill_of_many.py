"""The drill with a dozen runs: each process killed in turn and all at once, the state locked, its disk full."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench_console.engine import control
from mlebench_console.state import database
from mlebench_console.state.lifecycle import FailureClass
from tests.engine.harness import SUBMIT, Harness, eventually
from tests.engine.test_fault_drill import WORK, assert_ended_once, assert_finished_whole

pytestmark = pytest.mark.usefixtures("bubblewrap")
MANY = 12
LOST = 2


def test_a_dozen_runs_end_once_though_everything_is_killed_in_turn_and_at_once(harness: Harness) -> None:
    harness.agent("worker", WORK)
    harness.start()
    harness.launch("worker", seeds=MANY)
    running = harness.until_started()
    lost, others = running[:LOST], running[LOST:]
    harness.kill_workers()
    harness.kill_engine()
    harness.start()
    harness.kill_runner()
    harness.kill_shim(lost[0])
    for run in others[:4]:
        harness.go(run)
    eventually(lambda: sum(run.has_ended for run in harness.runs()) == 5)
    harness.kill_engine()
    harness.kill_runner()
    harness.kill_shim(lost[1])
    for run in others[4:]:
        harness.go(run)
    harness.start()
    ended = {run.id: run for run in harness.ended()}
    for run in others:
        assert_finished_whole(harness, ended[run.id])
    for run in lost:
        assert ended[run.id].failure_class is FailureClass.INFRASTRUCTURE
        assert_ended_once(harness, ended[run.id])


def test_an_engine_that_is_killed_every_few_commits_ends_each_run_once(harness: Harness) -> None:
    harness.agent("quick", f"echo first half; {SUBMIT}; echo second half")
    harness.start()
    harness.launch("quick", seeds=8, concurrency=4)
    state = database.open_for_reading(harness.places.state_dir)
    try:
        for patience in range(2, 14):
            for _ in range(patience):
                until_written(state, harness)
            harness.kill_engine()
            harness.start()
    finally:
        state.close()
    for run in harness.ended():
        assert_finished_whole(harness, run)


def until_written(state: database.Database, harness: Harness) -> None:
    """Wait until the engine has written anything, or has nothing to write any more."""
    seen = state.data_version()
    eventually(lambda: state.data_version() != seen or all_ended(harness))


def all_ended(harness: Harness) -> bool:
    return all(run.has_ended for run in harness.runs())


def test_a_locked_state_delays_runs_and_loses_none(harness: Harness) -> None:
    harness.agent("worker", WORK)
    harness.start()
    harness.launch("worker", seeds=3)
    for run in harness.until_started():
        harness.go(run)
    other = sqlite3.connect(harness.places.state_dir / database.DATABASE_NAME, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        eventually(lambda: "is locked" in control.status(harness.places).problem)
        beat = control.status(harness.places).heartbeat_at
        eventually(lambda: control.status(harness.places).heartbeat_at != beat)
        other.execute("ROLLBACK")
    finally:
        other.close()
    for run in harness.ended():
        assert_finished_whole(harness, run)
    eventually(lambda: control.status(harness.places).problem == "")


def test_a_full_disk_under_the_state_delays_runs_and_loses_none(
    tmp_path: Path, prepared_data: Path, empty_state: Path, bubblewrap: str
) -> None:
    """Within a small file system of its own, which only a new mount namespace can have."""
    place = tmp_path / "small"
    place.mkdir()
    inside = [
        sys.executable,
        "-m",
        "tests.engine.full_disk",
        str(place),
        str(prepared_data),
        str(empty_state),
    ]
    sandbox = [
        bubblewrap,
        "--dev-bind",
        "/",
        "/",
        "--size",
        str(48 << 20),
        "--tmpfs",
        str(place),
        "--die-with-parent",
    ]
    done = subprocess.run([*sandbox, *inside], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
