"""Agents whose container's main process can't end them are ended all the same, and judged by what they left."""

from __future__ import annotations

import os
import signal

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import Outcome
from tests.docker.harness import DockerHarness
from tests.engine.harness import SUBMIT

STUBBORN = "trap '' TERM; while :; do sleep 1; done"
STORM = "trap '' TERM; perl -e 'fork while 1'"


def test_agents_that_their_main_process_does_not_end_are_ended_by_the_runner_and_graded(
    docker: DockerHarness,
) -> None:
    """One whose main process is stopped, and a storm of forks that leaves it no time."""
    docker.agent("stubborn", f"{SUBMIT}; {STUBBORN}")
    docker.agent("storm", f"{SUBMIT}; {STORM}")
    docker.start()
    docker.launch("stubborn", time_limit_seconds=6, grace_seconds=0.5)
    (stubborn,) = docker.until_started()
    os.kill(docker.container_of(stubborn)["State"]["Pid"], signal.SIGSTOP)
    # As many as leave its main process no time, and not the limit of thousands, which would stall this machine.
    docker.launch("storm", time_limit_seconds=8, grace_seconds=0.5, container_options=("pids_limit=400",))
    ended = docker.ended()
    assert len(ended) == 2
    for run in ended:
        assert run.outcome is Outcome.BELOW_MEDIAN, run.failure_text
        ending = protocol.read(docker.folder(run) / protocol.EXIT, Ending)
        assert (ending.reason, ending.submission_sequence) == ("deadline", 1)
        docker.assert_ended_once(run)
    docker.until_clean()
