"""Agents in containers from launch to grade, with nothing left at the daemon."""

from __future__ import annotations

import os

import pytest

from mlebench_console.engine.places import own_agents_folder
from mlebench_console.engine.requests import StopRuns
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.problems import Problem
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from tests.docker.harness import DockerHarness
from tests.engine.harness import SUBMIT, lines, shown


def test_the_dummy_goes_the_whole_way_in_a_container(docker: DockerHarness) -> None:
    docker.start()
    docker.launch("dummy", agents_dir=str(own_agents_folder()), seeds=2)
    for run in docker.ended():
        assert run.outcome is Outcome.BELOW_MEDIAN
        assert "nonroot" in docker.log(run)
        (attempt,) = docker.attempts(run)
        assert attempt.runtime == "docker"
        assert attempt.isolated
        (started,) = (
            line for line in lines(docker.folder(run) / protocol.EVENTS) if line["kind"] == "started"
        )
        assert started["image"].startswith("sha256:")
        assert attempt.image == started["image"]
        assert attempt.hardware is not None
        assert attempt.hardware.cpus == os.cpu_count()
        (call,) = lines(docker.folder(run) / protocol.VALIDATIONS)
        assert call["valid"]
    docker.until_clean()


def test_a_crash_no_submission_a_deadline_and_too_much_memory_are_told_apart(docker: DockerHarness) -> None:
    eat = "python3 -c 'data = []\nwhile True: data.append(bytearray(1 << 20))'"
    docker.agent("crash", "echo oh no; exit 3")
    docker.agent("lazy", "exit 0")
    docker.agent("stubborn", "trap '' TERM; echo here; while :; do sleep 1; done")
    docker.agent("late", f"{SUBMIT}; trap 'echo leaving; exit 0' TERM; while :; do sleep 0.1; done")
    docker.agent("eater", f"{eat}; exit $?")
    docker.start()
    docker.launch("crash")
    docker.launch("lazy")
    docker.launch("stubborn", time_limit_seconds=2, grace_seconds=1)
    docker.launch("late", time_limit_seconds=4, grace_seconds=30)
    docker.launch("eater", memory_bytes=256 << 20)
    runs = {run.sweep_id.rpartition("-")[0]: run for run in docker.ended()}
    assert runs["crash"].failure_class is FailureClass.CRASH
    assert "oh no" in docker.log(runs["crash"])
    assert docker.attempts(runs["crash"])[0].exit_code == 3
    assert runs["lazy"].outcome is Outcome.NO_SUBMISSION
    assert runs["stubborn"].failure_class is FailureClass.TIMEOUT
    assert runs["late"].outcome is Outcome.BELOW_MEDIAN
    assert "leaving" in docker.log(runs["late"])
    assert docker.attempts(runs["late"])[0].exit_reason == "deadline"
    assert runs["eater"].failure_class is FailureClass.MEMORY
    docker.until_clean()


def test_a_stopped_run_has_its_grace_and_leaves_nothing(docker: DockerHarness) -> None:
    docker.agent("polite", f"trap 'echo leaving; exit 0' TERM; {SUBMIT}; while :; do sleep 0.1; done")
    docker.start()
    docker.launch("polite", grace_seconds=20)
    (run,) = docker.until_started()
    docker.ask(StopRuns(runs=shown(run)))
    (run,) = docker.ended()
    assert run.state is RunState.STOPPED
    assert "leaving" in docker.log(run)
    docker.until_clean()


def test_an_image_that_is_missing_is_told_at_launch(docker: DockerHarness) -> None:
    docker.agent("probe", "")
    docker.start()
    folder = docker.agents_dir / "no-such-image"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM mlebench-env\n")
    (folder / "start.sh").write_text("")
    (folder / "config.yaml").write_text(
        "none:\n  start: no-such-image/start.sh\n  dockerfile: no-such-image/Dockerfile\n"
    )
    with pytest.raises(Problem, match="images build no-such-image"):
        docker.launch("none")
