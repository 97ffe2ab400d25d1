"""Agents whose container's main process can't end them are ended all the same, and judged by what they left."""

from __future__ import annotations

import os
import signal

from environment.container.output import Ending
from environment.runner import protocol
from state.lifecycle import Outcome
from state.records import Run
from tests.docker.harness import DockerHarness
from tests.engine.harness import SUBMIT

STUBBORN = "trap '' TERM; while :; do sleep 1; done"
STORM = "trap '' TERM; perl -e 'fork while 1'"


def assert_ended_by_its_deadline(docker: DockerHarness, run: Run) -> None:
    assert run.outcome is Outcome.BELOW_MEDIAN, run.failure_text
    ending = protocol.read(docker.folder(run) / protocol.EXIT, Ending)
    assert (ending.reason, ending.submission_sequence) == ("deadline", 1)
    docker.assert_ended_once(run)
    docker.until_clean()


def test_an_agent_that_its_main_process_does_not_end_is_ended_by_the_runner_and_graded(
    docker: DockerHarness,
) -> None:
    docker.agent("stubborn", f"{SUBMIT}; {STUBBORN}")
    docker.start()
    docker.launch("stubborn", time_limit_seconds=6, grace_seconds=0.5)
    (run,) = docker.until_started()
    os.kill(docker.container_of(run)["State"]["Pid"], signal.SIGSTOP)
    (run,) = docker.ended()
    assert_ended_by_its_deadline(docker, run)


def test_a_storm_of_forks_does_not_outlive_its_deadline_and_is_graded(docker: DockerHarness) -> None:
    docker.agent("storm", f"{SUBMIT}; {STORM}")
    docker.start()
    docker.launch("storm", time_limit_seconds=8, grace_seconds=0.5)
    docker.until_started()
    (run,) = docker.ended()
    assert_ended_by_its_deadline(docker, run)
