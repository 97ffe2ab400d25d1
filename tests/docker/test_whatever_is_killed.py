"""The whole promise, by the command line: a sweep in containers outlives every kill and leaves its results alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError

from mlebench_console import prepare_competition
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.demo_data import (
    DEMO_COMPETITIONS,
    authors,
    cactus,
    conductors,
    generate,
    insults,
    spaceship,
)
from mlebench_console.engine.images import connect
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import FailureClass, RunState
from mlebench_console.state.records import Run
from tests.docker.conftest import having_the_daemon
from tests.docker.daemon import kill_and_restart_the_daemon
from tests.docker.harness import DockerHarness
from tests.engine.harness import eventually, until_released
from tests.machine import BASE_IMAGE

SEEDS = 2
PATIENCE = 600.0
# Of programs of ours that were interrupted, wherever they keep what is not whole yet.
UNFINISHED = ("*.partial", ".*.partial", "*.tmp")


@dataclass(frozen=True)
class CommandLine:
    """The program as an operator types it, on places of the test's own."""

    places: Places

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "console",
                f"--config={self.places.config_file}",
                f"--data-dir={self.places.data_dir}",
                f"--state-dir={self.places.state_dir}",
                *arguments,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def told(self, *arguments: str) -> Any:
        """What a command tells with --json."""
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def six_competitions(tmp_path: Path) -> Path:
    """The demo's competitions, prepared; with fewer rows and pictures, which are most of the agents' work."""
    with pytest.MonkeyPatch.context() as patch:
        for data, labelled in ((authors, 600), (cactus, 500), (conductors, 400), (spaceship, 1000)):
            patch.setattr(data, "LABELLED", labelled)
            patch.setattr(data, "UNLABELLED", 10)
        patch.setattr(insults, "TRAIN", 600)
        for competition in DEMO_COMPETITIONS:
            raw = tmp_path / "raw" / competition
            generate(competition, raw)
            prepare_competition(competition, raw=raw, data_dir=tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def docker(tmp_path: Path, six_competitions: Path, images: None) -> Iterator[DockerHarness]:
    """The machine's daemon for this test alone, and a harness that kills what the command line starts."""
    made = DockerHarness(
        Places(tmp_path / "config.toml", six_competitions, tmp_path / "state"), tmp_path / "agents"
    )
    with having_the_daemon(alone=True):
        yield made
        made.close()


def running(docker: DockerHarness) -> list[Run]:
    """Wait until some agent really works, and tell all that do."""

    def look() -> list[Run]:
        return [
            run
            for run in docker.runs()
            if run.state is RunState.RUNNING and (docker.folder(run) / protocol.LOG).exists()
        ]

    return eventually(look, patience=PATIENCE)


def kill_an_agent(docker: DockerHarness) -> None:
    """Kill the container of an agent that works; one that ends by itself just then is none."""

    def strike() -> bool:
        for one in docker.containers():
            if one["State"] == "running" and one["Labels"]["mlebench.role"] == "agent":
                try:
                    connect().kill(one["Id"])
                except APIError as error:
                    if error.status_code != HTTPStatus.CONFLICT:
                        raise
                else:
                    return True
        return False

    running(docker)
    eventually(strike, patience=PATIENCE)


def until_ended(docker: DockerHarness, count: int) -> None:
    eventually(lambda: sum(run.has_ended for run in docker.runs()) >= count, patience=PATIENCE)


@pytest.mark.timeout(1800)
def test_twelve_runs_are_graded_whatever_is_killed_and_nothing_else_is_left(
    docker: DockerHarness, tmp_path: Path
) -> None:
    mlebench = CommandLine(docker.places)
    in_tmp = set(Path("/tmp").glob("mlebench-build-*"))
    names = ("mlebench-env", "mlebench-grader", "baseline")
    built = mlebench.told("images", "build", *names, "--base-image", BASE_IMAGE)
    assert [image["name"] for image in built] == list(names)

    mlebench("engine", "start")
    competitions = [word for name in DEMO_COMPETITIONS for word in ("-c", name)]
    sweep = mlebench.told(
        "sweep", "launch", "--agent", "baseline", *competitions, "--seeds", str(SEEDS), "--minutes", "2",
        "--runtime", "docker", "--concurrency", "3", "--cpus", "0.6", "--retries", "4",
    )["sweep_id"]  # fmt: skip

    kill_an_agent(docker)
    until_ended(docker, 2)
    running(docker)
    docker.kill_engine()
    mlebench("engine", "start")
    running(docker)
    docker.kill_runner()
    eventually(docker.runner_lives)
    eventually(docker.kill_workers, patience=PATIENCE)
    until_ended(docker, 4)
    running(docker)
    kill_and_restart_the_daemon()
    until_ended(docker, 6)
    # All of it at once; early, because what is lost for the second time waits twice as long to be retried.
    kill_an_agent(docker)
    docker.kill_engine()
    docker.kill_runner()
    kill_and_restart_the_daemon()
    mlebench("engine", "start")

    eventually(lambda: all(run.state is RunState.FINISHED for run in docker.runs()), patience=PATIENCE)
    ended = docker.runs()
    assert len(ended) == len(DEMO_COMPETITIONS) * SEEDS
    for run in ended:
        assert run.valid, run
        assert run.score is not None
        assert run.rerolls == 0
        *lost, last = docker.attempts(run)
        assert all(one.failure_class is FailureClass.INFRASTRUCTURE for one in lost)
        assert last.outcome == run.outcome
    assert any(run.attempts > 1 for run in ended), "no kill has cost a run: this test proves nothing"

    mlebench("export", "runs", sweep, str(tmp_path / "groups"))
    assert graded_again(mlebench, tmp_path) == {
        (run.seed, run.competition_id): (run.score, run.valid) for run in ended
    }

    mlebench("engine", "stop")
    docker.until_clean()
    runner_lock = docker.places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
    for lock in (lock_path(docker.places), runner_lock):
        until_released(lock)
    assert not list(protocol.inbox(docker.places.state_dir).iterdir())
    assert [path for pattern in UNFINISHED for path in tmp_path.rglob(pattern)] == []
    assert set(Path("/tmp").glob("mlebench-build-*")) - in_tmp == set()
    for run in ended:
        for attempt in docker.attempts(run):
            assert not (docker.places.state_dir / attempt.directory / protocol.SERVICES).exists()


def graded_again(mlebench: CommandLine, tmp_path: Path) -> dict[tuple[int, str], tuple[float | None, bool]]:
    """What `grade` says of the exported files, by seed and competition: one group is one seed."""
    found: dict[tuple[int, str], tuple[float | None, bool]] = {}
    for seed, metadata in enumerate(sorted((tmp_path / "groups").glob("*/metadata.json")), 1):
        listed, reports = tmp_path / f"{seed}.jsonl", tmp_path / f"reports-{seed}"
        mlebench("make-submission", "--metadata", str(metadata), "--output", str(listed))
        mlebench("grade", "--submission", str(listed), "--output-dir", str(reports))
        (report,) = reports.glob("*_grading_report.json")
        for one in json.loads(report.read_text())["competition_reports"]:
            found[seed, one["competition_id"]] = (one["score"], one["valid_submission"])
    return found
