"""Starting, stopping, watching and asking the engine."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mlebench_console.engine import control
from mlebench_console.engine.control import client
from mlebench_console.engine.control.client import engine_command
from mlebench_console.engine.control.status import lock_path, owner_path, status_path
from mlebench_console.engine.requests import PauseSweep
from mlebench_console.foundation import locks
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import EnvironmentProblem, StateProblem
from mlebench_console.state import database
from tests.engine.harness import Harness, eventually

# No file takes a byte, a log neither: a write fails with EFBIG in place of ENOSPC.
NO_ROOM = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")


def test_an_engine_that_never_ran_is_told_as_such(harness: Harness) -> None:
    assert control.status(harness.places) == control.EngineStatus()
    assert not control.stop(harness.places).running
    with pytest.raises(EnvironmentProblem, match="not running"):
        control.ask(harness.places, PauseSweep(sweep_id="x"))


def test_a_started_engine_is_nobodys_child_and_tells_how_it_is(harness: Harness) -> None:
    started = control.start(harness.places)
    assert started.running
    assert started.pid is not None
    assert os.getsid(started.pid) != os.getsid(0)
    parent = Path(f"/proc/{started.pid}/stat").read_text().rpartition(")")[2].split()[1]
    assert int(parent) != os.getpid()
    assert Path(f"/proc/{started.pid}/cwd").resolve() == Path("/")
    assert started.cpus
    assert started.memory_total
    assert started.state_disk_free
    assert (started.live, started.queued) == (0, 0)
    beat = started.heartbeat_at
    eventually(lambda: control.status(harness.places).heartbeat_at != beat)


def test_an_engine_that_ends_before_it_answers_is_noticed_at_once(harness: Harness) -> None:
    state_dir = harness.places.state_dir
    state_dir.mkdir()
    database.open_for_writing(state_dir).close()
    engine = FileLock(lock_path(harness.places))
    assert engine.acquire()
    threading.Timer(0.2, engine.release).start()
    with pytest.raises(control.EngineGone, match=r"without answering request 1\n.*engine start") as gone:
        control.ask(harness.places, PauseSweep(sweep_id="x"), wait_seconds=600)
    assert gone.value.request == 1


def test_an_engine_for_one_command_ends_with_it_and_nobody_else_can_read_its_log(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = harness.places
    places.state_dir.mkdir()
    command = FileLock(owner_path(places))
    assert command.acquire()
    monkeypatch.setenv("KAGGLE_USERNAME", "alice")
    control.start(places)
    assert places.engine_log.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("KAGGLE_KEY", "new")
    names = ("KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_API_TOKEN")
    assert control.variables_unknown_to_engine(places, names) == ["KAGGLE_KEY"]
    command.release()  # as the kernel does when a command is killed
    eventually(lambda: not places.state_dir.exists())


def test_a_state_that_other_users_could_read_is_closed_to_them_by_its_next_engine(harness: Harness) -> None:
    """It has the logs and files of agents, which may be setuid, and the tokens of live runs."""
    state_dir = harness.places.state_dir
    state_dir.mkdir()
    state_dir.chmod(0o755)
    control.start(harness.places)
    assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700


def test_a_second_engine_is_refused_in_clear_words(harness: Harness) -> None:
    harness.start()
    with pytest.raises(StateProblem, match="already running"):
        control.start(harness.places)
    second = subprocess.run(engine_command(harness.places), capture_output=True, text=True, check=False)
    assert second.returncode == StateProblem.exit_code
    assert "another engine is running in" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 2
    assert control.status(harness.places).running


def test_two_that_start_it_at_once_both_get_it(harness: Harness) -> None:
    script = (
        "import sys; from pathlib import Path; from mlebench_console.engine.places import Places;"
        "from mlebench_console.engine import control;"
        "print(control.ensure_running(Places(*map(Path, sys.argv[1:]))).pid)"
    )
    places = harness.places
    arguments = [str(path) for path in (places.config_file, places.data_dir, places.state_dir)]
    starters = [
        subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [starter.communicate()[0].strip() for starter in starters]
    assert [starter.returncode for starter in starters] == [0, 0, 0]
    assert eventually(lambda: control.status(places).pid) == int(lock_path(places).read_text())
    assert any(pid == lock_path(places).read_text() for pid in said)


def test_a_killed_engine_is_seen_as_gone_with_its_last_facts(harness: Harness) -> None:
    harness.start()
    pid = control.status(harness.places).pid
    harness.kill_engine()
    left = control.status(harness.places)
    assert not left.running
    assert left.pid == pid


@pytest.mark.parametrize(
    ("content", "telling"),
    [(b"this is no database" * 100, "damaged"), (None, "newer version")],
    ids=["broken", "newer"],
)
def test_an_engine_that_can_not_use_the_state_says_why(
    harness: Harness, content: bytes | None, telling: str
) -> None:
    harness.places.state_dir.mkdir()
    path = harness.places.state_dir / database.DATABASE_NAME
    if content is None:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 999")
        connection.close()
    else:
        path.write_bytes(content)
    with pytest.raises(EnvironmentProblem, match=telling):
        control.start(harness.places)
    assert not locks.is_held(lock_path(harness.places))


def test_a_state_directory_that_can_not_be_one_is_told(harness: Harness) -> None:
    harness.places.state_dir.write_text("a file in the way")
    with pytest.raises(EnvironmentProblem, match="can't be created"):
        control.start(harness.places)


def test_a_configuration_that_can_not_be_meant_keeps_the_engine_from_starting(harness: Harness) -> None:
    harness.places.config_file.write_text("[engine]\ncpus = 'many'\n")
    with pytest.raises(EnvironmentProblem, match="cpus is not a number"):
        control.start(harness.places)


def test_a_state_locked_by_another_program_stops_nothing_for_good(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.2)
    harness.start()
    other = sqlite3.connect(harness.places.state_dir / database.DATABASE_NAME, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateProblem, match="locked"):
            harness.ask(PauseSweep(sweep_id="none"))
        other.execute("ROLLBACK")
    finally:
        other.close()
    with pytest.raises(control.RefusedRequest, match="no sweep 'none'"):
        harness.ask(PauseSweep(sweep_id="none"))


def test_a_damaged_status_file_is_told_and_soon_mended(harness: Harness) -> None:
    harness.places.state_dir.mkdir()
    status_path(harness.places).write_text("{")
    with pytest.raises(StateProblem, match="can't be read"):
        control.status(harness.places)
    harness.start()
    assert json.loads(status_path(harness.places).read_text())["running"]


def test_an_engine_that_does_not_answer_is_told_and_the_request_stays(harness: Harness) -> None:
    harness.start()
    pid = control.status(harness.places).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(EnvironmentProblem, match="has not answered request 1"):
            control.ask(harness.places, PauseSweep(sweep_id="none"), wait_seconds=0.2)
    finally:
        os.kill(pid, signal.SIGCONT)
    with pytest.raises(control.RefusedRequest):
        harness.ask(PauseSweep(sweep_id="none"))


def test_the_unit_names_this_very_engine(harness: Harness) -> None:
    text = control.unit_text(harness.places)
    assert f'"--state-dir={harness.places.state_dir}"' in text
    assert "KillMode=process" in text


def test_watching_costs_no_heavy_import() -> None:
    script = (
        "import sys, mlebench_console.engine.control;"
        "heavy = {'pandas', 'numpy', 'yaml', 'docker', 'psutil', 'textual'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_an_engine_that_a_full_disk_ends_says_so_on_the_terminal(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = harness.places
    places.state_dir.mkdir(parents=True)
    command = [*NO_ROOM, *engine_command(places)]
    monkeypatch.setattr(client, "engine_command", lambda _places: command)
    with pytest.raises(EnvironmentProblem) as told:
        control.start(places)
    assert f"the engine can't work in {places.state_dir}: File too large" in told.value.why
    assert "Traceback" not in str(told.value)


def test_an_engine_that_a_full_disk_ends_says_so_in_its_log(harness: Harness) -> None:
    places = harness.places
    places.state_dir.mkdir(parents=True)
    command = [*NO_ROOM, *engine_command(places)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == EnvironmentProblem.exit_code
    assert f"the engine can't work in {places.state_dir}: File too large" in ended.stderr
    assert "Traceback" not in ended.stderr
