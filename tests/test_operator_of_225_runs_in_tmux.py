"""An operator and 225 runs, 64 of them live, in a real terminal: find what failed, read on, relaunch, resize."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import console_world
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import requests, runs, transitions
from mlebench_console.state.database import open_for_reading, open_for_writing
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure
from tests.terminal import Terminal

ROOT = Path(__file__).parent.parent
LINES_PER_SECOND = 200


@pytest.fixture
def failed(places: Places) -> int:
    """A run of a sweep of 225 that has failed; its number."""
    console_world.build(places)
    database = open_for_writing(places.state_dir)
    run = next(run for run in runs.of_sweep(database, console_world.PLAYED) if run.attempts == 0)
    directory = places.runs_dir / run.sweep_id / f"run-{run.id}"
    (directory / protocol.LOG).parent.mkdir(parents=True)
    (directory / protocol.LOG).write_text("loading\nRuntimeError: the fold has no rows\n")
    at = time.time() - 600
    relative = str(directory.relative_to(places.state_dir))
    attempt = transitions.launch(database, run.id, directory=relative, runtime="docker", now=at).id
    transitions.started(database, attempt, isolated=True, at=at, now=at)
    transitions.agent_ended(database, attempt, EndReason.EXITED, exit_code=1, at=at + 60, now=at + 60)
    crash = Failure(FailureClass.CRASH, "RuntimeError: the fold has no rows", "")
    transitions.failed(database, attempt, crash, now=at + 61)
    database.close()
    return run.id


@pytest.fixture
def played(places: Places, failed: int) -> Iterator[None]:
    """What 64 live runs write, and an engine's heartbeats."""
    player = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "benchmarks.console_world",
            str(places.state_dir.parent),
            str(LINES_PER_SECOND),
        ],
        cwd=ROOT,
    )
    yield
    player.kill()
    player.wait()


@pytest.fixture
def terminal(tmux: str, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmux, tmp_path, columns=120, lines=40)
    yield opened
    opened.close()


@pytest.mark.usefixtures("played")
def test_a_failed_seed_of_225_runs_is_found_read_and_relaunched_on_a_terminal_that_changes_its_size(
    terminal: Terminal, places: Places, failed: int
) -> None:
    terminal.type(
        f"cd {shlex.quote(str(ROOT))}; {sys.executable} -m mlebench_console.console --state-dir={places.state_dir}"
        f" --data-dir={places.data_dir} --config={places.config_file} --screen sweep:{console_world.PLAYED}"
    )
    terminal.wait_for("engine ok", "64 running", "seed 1")

    terminal.press("/")
    terminal.type("state:running")
    terminal.wait_for("64 of 225")
    terminal.press("l")
    terminal.wait_for("trying another learning rate", "following")
    before = terminal.seen()
    terminal.wait_until(lambda seen: seen != before and "following" in seen, "what is printed meanwhile")
    terminal.press("Escape")
    terminal.wait_for("64 of 225")

    terminal.resize(20, 5)
    terminal.wait_until(lambda seen: "too small" in seen and "seed" not in seen, "that it is too small")
    terminal.resize(120, 40)
    terminal.wait_for("engine ok", "64 of 225", "seed 1")

    terminal.press("/", "C-u")
    terminal.type("state:failed")
    terminal.wait_for("1 of 225")
    terminal.press("f")
    terminal.press("l")
    terminal.wait_for("RuntimeError: the fold has no rows", "loading")
    terminal.press("Escape")
    terminal.wait_for("1 of 225")
    terminal.press("r")
    terminal.wait_for("Relaunch 1 run?", "no, leave it")
    terminal.press("y")
    terminal.wait_until(lambda _seen: relaunches(places) == [failed], "the request filed")
    terminal.press("q")
    terminal.wait_for("The engine keeps running")


def relaunches(places: Places) -> list[int]:
    database = open_for_reading(places.state_dir)
    filed = requests.open_requests(database, now=float("inf"))
    database.close()
    return [run["id"] for each in filed if each.kind == "run.relaunch" for run in each.arguments["runs"]]
