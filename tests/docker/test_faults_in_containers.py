"""Whatever is killed, every run in a container ends exactly once, with the outcome that it would have had."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mlebench_console.engine.images import connect
from mlebench_console.environment.runner import protocol
from mlebench_console.state import database, events
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import Run
from tests.docker.daemon import kill_and_restart_the_daemon
from tests.docker.harness import DockerHarness
from tests.engine.harness import SUBMIT, WAIT_FOR_GO, eventually

WORK = f"echo first half; {WAIT_FOR_GO}; {SUBMIT}; echo second half"
RUNS = 12


def assert_finished_whole(docker: DockerHarness, run: Run) -> None:
    assert run.state is RunState.FINISHED, run.failure_text
    assert run.outcome is Outcome.BELOW_MEDIAN
    assert docker.log(run) == "first half\nsecond half\n"
    docker.assert_ended_once(run)


def assert_lost(docker: DockerHarness, run: Run) -> None:
    assert run.failure_class is FailureClass.INFRASTRUCTURE
    assert "from outside" in run.failure_text
    assert docker.log(run) == "first half\n"
    docker.assert_ended_once(run)


@pytest.mark.parametrize(
    "kill",
    [
        [DockerHarness.kill_engine],
        [DockerHarness.kill_runner],
        [DockerHarness.kill_runner, DockerHarness.kill_engine],
    ],
    ids=["engine", "runner", "both"],
)
def test_containers_are_adopted(docker: DockerHarness, kill: list[Callable[[DockerHarness], None]]) -> None:
    docker.agent("worker", WORK)
    docker.start()
    docker.launch("worker", seeds=2)
    first, second = docker.until_started()
    for one in kill:
        one(docker)
    docker.go(first)  # it ends with nobody there to see it
    eventually((docker.folder(first) / protocol.ENDING).exists)
    docker.start()
    docker.go(second)
    for run in docker.ended():
        assert_finished_whole(docker, run)
    docker.until_clean()


def until_containers(docker: DockerHarness, wanted: int) -> None:
    """Wait until there are at least so many containers."""
    eventually(lambda: len(docker.containers()) >= wanted)


def test_a_runner_killed_while_it_starts_containers_starts_no_agent_twice(docker: DockerHarness) -> None:
    docker.agent("worker", WORK)
    docker.start()
    docker.launch("worker", seeds=4)
    for wanted in (1, 3, 6):
        until_containers(docker, wanted)
        docker.kill_runner()
        eventually(docker.runner_lives)
    for run in docker.until_started():
        docker.go(run)
    for run in docker.ended():
        assert_finished_whole(docker, run)
    docker.until_clean()


def test_deadlines_hold_with_engine_and_runner_dead(docker: DockerHarness) -> None:
    docker.agent("stubborn", "trap '' TERM; while :; do sleep 1; done")
    docker.start()
    docker.launch("stubborn", time_limit_seconds=4, grace_seconds=0.5)
    (run,) = docker.until_started()
    docker.kill_engine()
    docker.kill_runner()
    eventually((docker.folder(run) / protocol.ENDING).exists)
    docker.start()
    (run,) = docker.ended()
    assert run.failure_class is FailureClass.TIMEOUT
    docker.until_clean()


def test_a_container_killed_from_outside_costs_its_own_run_only(docker: DockerHarness) -> None:
    docker.agent("worker", WORK)
    docker.start()
    docker.launch("worker", seeds=2)
    lost, other = docker.until_started()
    connect().kill(docker.container_of(lost)["Id"])
    docker.go(other)
    ended = {run.id: run for run in docker.ended()}
    assert_lost(docker, ended[lost.id])
    assert_finished_whole(docker, ended[other.id])
    docker.until_clean()


def test_a_validation_server_that_dies_is_there_again(docker: DockerHarness) -> None:
    ask = '/home/validate_submission.sh "$SUBMISSION_DIR/submission.csv"'
    docker.agent("asker", f"{SUBMIT}; {WAIT_FOR_GO}; for _ in $(seq 60); do {ask} && break; sleep 0.5; done")
    docker.start()
    docker.launch("asker")
    (run,) = docker.until_started()
    server = docker.container_of(run, "validation")["Id"]
    kill = (
        "import os, signal\n"
        "for p in os.listdir('/proc'):\n"
        "    if p.isdigit() and b'.environment.validation_server' in open(f'/proc/{p}/cmdline', 'rb').read():\n"
        "        os.kill(int(p), signal.SIGKILL)\n"
    )
    begun = connect().exec_create(server, ["/opt/grader/bin/python", "-c", kill])
    assert connect().exec_start(begun["Id"]) == b""
    docker.go(run)
    (run,) = docker.ended()
    assert '"result"' in docker.log(run)
    (told,) = told_of(docker, run, "run.service")
    assert told == "the validation server was killed by SIGKILL; it is started again"
    docker.until_clean()


def told_of(docker: DockerHarness, run: Run, kind: str) -> list[str]:
    state = database.open_for_reading(docker.places.state_dir)
    try:
        return [event.text for event in events.newest(state, run_id=run.id) if event.kind == kind]
    finally:
        state.close()


def test_a_grader_that_is_killed_is_there_again_for_its_agent_and_told(docker: DockerHarness) -> None:
    """Its container too: a second one of the same name joins the network namespace that the agent still holds."""
    ask = '/home/validate_submission.sh "$SUBMISSION_DIR/submission.csv"'
    asking = f"{SUBMIT}; {WAIT_FOR_GO}; {ask} | grep -q result && echo answered"
    docker.agent("asker", f"{asking}; exit 0")
    docker.agent("crasher", f"rm -f $SUBMISSION_DIR/*; {WAIT_FOR_GO}; exit 3")
    docker.start()
    for name in ("asker", "crasher"):
        docker.launch(name)
    asker, crasher = sorted(docker.until_started(), key=lambda run: run.sweep_id)
    connect().kill(docker.container_of(asker, "validation")["Id"])
    connect().remove_container(docker.container_of(crasher, "validation")["Id"], force=True)
    for run in (asker, crasher):
        (told,) = eventually(partial(told_of, docker, run, "run.service"))
        assert told.startswith("the validation server was ")
        assert "it was started again" in told
        docker.go(run)
    docker.ended()
    asker, crasher = sorted(docker.runs(), key=lambda run: run.sweep_id)
    assert "answered" in docker.log(asker)
    assert asker.outcome is Outcome.BELOW_MEDIAN
    # What others have killed beside an agent is evidence that it did not fail by itself.
    assert crasher.failure_class is FailureClass.INFRASTRUCTURE
    assert "was killed from outside while it ran" in crasher.failure_text
    docker.until_clean()


def test_a_proxy_that_is_killed_is_there_again_and_told(docker: DockerHarness) -> None:
    docker.agent("worker", WORK)
    docker.start()
    docker.launch("worker", network="models", allowed_hosts=["example.org"])
    (run,) = docker.until_started()
    killed = docker.container_of(run, "proxy")["Id"]
    connect().kill(killed)
    (told,) = eventually(lambda: told_of(docker, run, "run.service"))
    assert told.startswith("the proxy to the model hosts was killed")
    assert docker.container_of(run, "proxy")["State"]["Running"]
    docker.go(run)
    (run,) = docker.ended()
    assert_finished_whole(docker, run)
    docker.until_clean()


@pytest.mark.alone
def test_the_drill(docker: DockerHarness) -> None:
    """Twelve runs; engine, runner, a worker, a container and dockerd are killed, in turn and at once."""
    docker.agent("worker", WORK)
    docker.start()
    docker.launch("worker", seeds=RUNS, cpus=0.15)
    running = docker.until_started()
    done, rest = running[:6], running[6:]
    docker.kill_engine()
    docker.go(done[0])
    docker.start()
    docker.kill_runner()
    docker.go(done[1])
    eventually(docker.runner_lives)
    eventually(lambda: any(run.standing for run in docker.runs()))
    docker.kill_workers()
    docker.go(done[2])
    connect().kill(docker.container_of(rest[0])["Id"])
    for run in done[3:]:
        docker.go(run)
    eventually(lambda: sum(run.has_ended for run in docker.runs()) == len(done) + 1)
    # Without live-restore a daemon that comes back ends what it finds: those runs are lost, and told so.
    docker.kill_engine()
    docker.kill_runner()
    kill_and_restart_the_daemon()
    docker.start()
    ended = {run.id: run for run in docker.ended()}
    for run in done:
        assert_finished_whole(docker, ended[run.id])
    for run in rest:
        assert_lost(docker, ended[run.id])
    docker.until_clean()
    assert not list(protocol.inbox(docker.places.state_dir).iterdir())


@pytest.mark.alone
def test_a_daemon_that_is_away_for_a_while_keeps_nothing_waiting_for_ever(docker: DockerHarness) -> None:
    docker.agent("worker", f"{SUBMIT}; {WAIT_FOR_GO}")
    docker.start()
    docker.launch("worker", seeds=2, concurrency=1)
    first = eventually(lambda: [run for run in docker.runs() if run.state is RunState.RUNNING])[0]
    eventually((docker.folder(first) / protocol.CODE / "starts").exists)
    kill_and_restart_the_daemon()
    second = eventually(
        lambda: [run for run in docker.runs() if run.id != first.id and run.state is RunState.RUNNING]
    )[0]
    docker.go(second)
    ended = {run.id: run for run in docker.ended()}
    assert ended[first.id].failure_class is FailureClass.INFRASTRUCTURE
    assert ended[second.id].outcome is Outcome.BELOW_MEDIAN
    docker.until_clean()
