"""An operator's night with 225 runs: a lost GPU, crashing agents, a full disk, a killed runner; in at most forty keys.

State, engine, runner and terminal are real; the runs of the large sweep have ended before, or wait while it is paused.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.code_snapshots import CodeSnapshots
from mlebench_console.foundation import locks
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import acknowledgements, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database, open_for_reading, open_for_writing
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import Grade, Run
from mlebench_console.state.transitions import Failure
from tests.conditions import spec_of
from tests.engine.conftest import prepared_data
from tests.engine.harness import WAIT_FOR_GO, Harness, eventually
from tests.terminal import Terminal

__all__ = ["prepared_data"]

ROOT = Path(__file__).parent.parent
NIGHT, ALIVE = "night", "alive"
BEST = "spooky-author-identification"
HOUR = 3600.0
DISK_BYTES, FREE_BYTES = 400 << 20, 18 << 20  # less than a twentieth
MOST_KEYS = 40
NOTE = "nvml"
WAITING = 225 - 17 - 6 - 120 - 3
OUTCOMES = (
    Outcome.GOLD,
    Outcome.BELOW_MEDIAN,
    Outcome.BRONZE,
    Outcome.NO_SUBMISSION,
    Outcome.SILVER,
    Outcome.ABOVE_MEDIAN,
)


class AtOnce(Executor):
    """Does what it is given before it returns."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*arguments, **named))
        return done


class Operator:
    """Presses keys in a terminal, and counts them."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.keys = 0

    def press(self, *keys: str) -> None:
        self.keys += len(keys)
        self.terminal.press(*keys)

    def write(self, text: str) -> None:
        """Type into a field, and press Enter."""
        self.keys += len(text) + 1
        self.terminal.type(text)


@pytest.fixture
def places(tmp_path: Path, root: None, prepared_data: Path) -> Iterator[Places]:
    """Places of which the state lies on a small disk of its own."""
    state = tmp_path / "state"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(state)], check=True)
    yield Places(tmp_path / "config.toml", prepared_data, state)
    subprocess.run(["umount", "--lazy", str(state)], check=True)


@pytest.fixture
def night(places: Places, tmp_path: Path) -> Iterator[Harness]:
    """The state that the operator finds, and an engine on it."""
    build(places)
    harness = Harness(places, tmp_path / "agents")
    harness.agent(ALIVE, WAIT_FOR_GO)
    harness.start()
    harness.launch(ALIVE, name=ALIVE, time_limit_seconds=3600)
    eventually(lambda: [run for run in harness.runs() if run.sweep_id == ALIVE and run.state == "running"])
    fill_the_disk(places.state_dir)
    yield harness
    harness.close()


def build(places: Places) -> None:
    """Make 225 runs: 17 that lost their GPU, six that crashed by two causes, 120 with results, the others waiting."""
    database = open_for_writing(places.state_dir)
    with database.transaction():
        spec = spec_of(
            agent_id="aide",
            agents_dir="/agents",
            competitions=registry.splits()["split75"],
            seeds=3,
            time_limit_seconds=24 * HOUR,
        )
        sweeps.create(
            database,
            sweep_id=NIGHT,
            name=NIGHT,
            spec=spec,
            agent_version="4f1c22d90aa1",
            concurrency=60,
            now=time.time() - 30 * HOUR,
        )
        sweeps.set_state(database, NIGHT, SweepState.PAUSED, now=time.time() - HOUR)
        found = runs.of_sweep(database, NIGHT)
        assert len(found) == 225
        best = [run for run in found if run.competition_id == BEST]
        others = [run for run in found if run.competition_id != BEST]
        for seed, (run, score, outcome) in enumerate(
            zip(
                best,
                (0.28411, 0.16001, 0.40000),
                (Outcome.BRONZE, Outcome.GOLD, Outcome.ABOVE_MEDIAN),
                strict=True,
            )
        ):
            finish(
                places, database, run, score, outcome, code=f"folds = {seed + 3}\nmodel = 'stack-{seed}'\n"
            )
        for place, run in enumerate(others[:17]):
            gpu = uuid.UUID(int=place << 100 | 0x1A2B3C4D5E)
            lost = f"GPU lost: Failed to initialize NVML: Unknown Error (GPU-{gpu})"
            fail(places, database, run, FailureClass.INFRASTRUCTURE, lost, ago=2 * HOUR + place)
        for run in others[17:20]:
            fail(
                places, database, run, FailureClass.CRASH, "RuntimeError: the fold has no rows", ago=5 * HOUR
            )
        for run in others[20:23]:
            fail(places, database, run, FailureClass.CRASH, "KeyError: 'target'", ago=9 * HOUR)
        for place, run in enumerate(others[23:143]):
            outcome = OUTCOMES[place % len(OUTCOMES)]
            finish(places, database, run, None if outcome is Outcome.NO_SUBMISSION else 0.5, outcome)
    database.close()


def launch(places: Places, database: Database, run: Run, *, ago: float) -> int:
    directory = places.runs_dir / run.sweep_id / run.competition_id / f"seed-{run.seed}" / "attempt-1-0"
    for name in (protocol.CODE, protocol.SUBMISSION, protocol.OUTPUT):
        (directory / name).mkdir(parents=True, exist_ok=True)
    at = time.time() - ago
    relative = str(directory.relative_to(places.state_dir))
    attempt = transitions.launch(database, run.id, directory=relative, runtime="docker", now=at)
    transitions.started(database, attempt.id, isolated=True, at=at, now=at)
    return attempt.id


def fail(places: Places, database: Database, run: Run, kind: FailureClass, text: str, *, ago: float) -> None:
    attempt = launch(places, database, run, ago=ago + 4 * HOUR)
    at = time.time() - ago
    transitions.agent_ended(database, attempt, EndReason.EXITED, exit_code=1, at=at, now=at)
    transitions.failed(database, attempt, Failure(kind, text, ""), now=at)


def finish(
    places: Places, database: Database, run: Run, score: float | None, outcome: Outcome, code: str = ""
) -> None:
    attempt = launch(places, database, run, ago=28 * HOUR)
    at = time.time() - 6 * HOUR
    if code:
        directory = places.state_dir / runs.attempt(database, attempt).directory
        (directory / protocol.CODE / "train.py").write_text(code)
        CodeSnapshots(directory, tuple, AtOnce(), SystemClock()).keep(1)
    if score is not None:
        submissions.add(
            database, attempt, submissions.Snapshot(1, at, 60.0, "ab" * 32, 84_213, "snapshots/1.csv")
        )
        added = submissions.of_attempt(database, attempt)[-1]
        submissions.add_grade(database, Grade(added.id, at, "v1", score, True, outcome, ""), now=at)
    transitions.agent_ended(database, attempt, EndReason.EXITED, exit_code=0, at=at, now=at)
    transitions.collected(database, attempt, now=at)
    transitions.finished(database, attempt, outcome, now=at)


def fill_the_disk(folder: Path) -> None:
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    with (folder / "something-else").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, free - FREE_BYTES)


def under_the_cursor(seen: str) -> str:
    """The line that the cursor is on."""
    return next((line for line in seen.splitlines() if line.startswith("▎")), "")


def until_on(operator: Operator, key: str, text: str) -> None:
    """Press a key until the cursor is on a line with some text."""
    for _ in range(8):
        if text in under_the_cursor(operator.terminal.seen()):
            return
        before = operator.terminal.seen()
        operator.press(key)
        operator.terminal.wait_until(before.__ne__, "the cursor elsewhere")
    raise AssertionError(f"no line with {text!r}:\n{operator.terminal.seen()}")


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 60)])
def test_a_night_takes_forty_keys_from_the_first_look_to_the_row(
    columns: int, lines: int, night: Harness, tmux: str, tmp_path: Path
) -> None:
    terminal = Terminal(tmux, tmp_path, columns=columns, lines=lines)
    operator, places = Operator(terminal), night.places
    try:
        terminal.type(
            f"cd {shlex.quote(str(tmp_path))}; PYTHONPATH={shlex.quote(str(ROOT / 'src'))}"
            f" {sys.executable} -m mlebench_console.console"
            f" --state-dir={places.state_dir} --data-dir={places.data_dir} --config={places.config_file}"
        )
        terminal.wait_for("engine ok", "96 % full", "GPU lost", "×17", "the fold has no rows", "KeyError")
        night.kill_runner()

        until_on(operator, "f", "GPU lost")
        operator.press("R")
        terminal.wait_for("Relaunch 17 runs?", "changes no statistics")
        operator.press("y")
        terminal.wait_for("relaunching 17 runs", "undo")
        operator.press("a")
        terminal.wait_for("', because")
        operator.write(NOTE)
        eventually(lambda: noted(places) == [NOTE])
        eventually(lambda: in_state(night, RunState.QUEUED) == 17 + WAITING)
        terminal.wait_until(lambda seen: "GPU lost" not in seen, "the outage out of the way")

        operator.press("2")
        terminal.wait_for("sweep 1 of 2", "spaceship-titanic")
        operator.press("]")
        terminal.wait_for("sweep 2 of 2", "aerial-cactus")
        operator.press("/")
        operator.write("spooky")
        terminal.wait_for("3 of 225", "G 0.16001", "B 0.28411")
        operator.press("Space", "Right", "Space", "d")
        terminal.wait_for("train.py", "folds = 3", "folds = 4", "model = 'stack-0'", "model = 'stack-1'")
        operator.press("Escape")

        operator.press("5")
        terminal.wait_for("ours: night", "ours: alive")
        operator.press("/")
        operator.write("night")
        terminal.wait_until(lambda seen: "ours: alive" not in seen, "the one experiment")
        operator.press("e")
        terminal.wait_for("not ready for the leaderboard", "46.67")
        operator.press("w")
        terminal.wait_for("night.md")
        operator.press("Enter")
        terminal.wait_for("written to")
        operator.press("q")
        terminal.wait_for("The engine keeps running")
    finally:
        terminal.close()

    assert operator.keys <= MOST_KEYS
    row = next(
        line for line in (tmp_path / "night.md").read_text().splitlines() if line.startswith("| aide (night)")
    )
    assert row.split("|")[3].strip() == "50.00 (1 seed)"
    # What was lost is there again, and the agent whose runner was killed has never noticed.
    eventually(lambda: locks.is_held(places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK))
    (alive,) = (run for run in night.runs() if run.sweep_id == ALIVE)
    night.go(alive)
    eventually(lambda: all(run.has_ended for run in night.runs() if run.sweep_id == ALIVE))
    night.assert_ended_once(alive)


def in_state(night: Harness, wanted: RunState) -> int:
    return sum(run.state is wanted for run in night.runs())


def noted(places: Places) -> list[str]:
    database = open_for_reading(places.state_dir)
    try:
        return [each.reason for each in acknowledgements.all_acknowledgements(database).values()]
    finally:
        database.close()
