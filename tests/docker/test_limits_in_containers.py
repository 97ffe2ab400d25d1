"""What an agent in a container may use: disk, time in which nothing happens, processes, shared memory; and rights."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker.errors import APIError

from mlebench_console.engine.images import connect
from mlebench_console.engine.requests import StopRuns, StopSweep
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.docker.sandbox import DockerHost, DockerSandbox
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.problems import Problem
from mlebench_console.state.lifecycle import FailureClass, Outcome
from tests.docker.harness import DockerHarness
from tests.engine.harness import SUBMIT, eventually, lines, shown
from tests.machine import BASE_IMAGE

MANY = 200_000_000
LIMIT = 100_000_000
SLEEP = "while :; do sleep 1; done"


def fill(place: str) -> str:
    # All of it at once: a file that grows is over the limit, and its agent ended, before it is whole.
    return f"fallocate --length {MANY} {place}/filler; {SLEEP}"


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    """A test's own folder, which must not lie in memory, as what an agent deletes there is not counted."""
    return on_disk


def test_disk_is_limited_wherever_in_its_container_an_agent_writes(docker: DockerHarness) -> None:
    """In the folders that are gathered, and in the container's own layer, of which the host sees nothing."""
    places = {"code": '"$CODE_DIR"', "tmp": "/tmp", "home": '"$HOME"'}
    for name, place in places.items():
        docker.agent(name, fill(place))
    docker.agent("worker", f"{SUBMIT}; {fill('/tmp')}")
    docker.start()
    for name in (*places, "worker"):
        docker.launch(name, disk_limit_bytes=LIMIT, cpus=0.4)
    ended = {run.sweep_id.removesuffix("-1"): run for run in docker.ended()}
    for name in places:
        assert ended[name].failure_class is FailureClass.DISK, ended[name]
        assert "at most 100,000,000 are allowed" in ended[name].failure_text
        measured = [line["disk_bytes"] for line in lines(docker.folder(ended[name]) / protocol.USAGE)]
        assert max(one for one in measured if one is not None) > MANY
    # Whoever has handed something in is judged by it.
    assert ended["worker"].outcome is Outcome.BELOW_MEDIAN
    docker.until_clean()


def test_what_an_agent_closes_to_all_but_itself_is_measured_for_an_engine_without_root(
    docker: DockerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = (
        f'mkdir "$CODE_DIR/closed"; fallocate -l {LIMIT} "$CODE_DIR/closed/file"; chmod 0 "$CODE_DIR/closed"'
    )
    deleted = f'exec 9<> "$CODE_DIR/x"; fallocate -l {LIMIT} "$CODE_DIR/x"; rm "$CODE_DIR/x"'
    docker.agent("hider", f'{closed}; {deleted}; touch "$LOGS_DIR/ready"; {SLEEP}')
    docker.start()
    docker.launch("hider")
    (run,) = docker.until_started()
    folder = docker.folder(run)
    eventually(lambda: (folder / protocol.LOGS / "ready").exists())
    order = protocol.read(folder / protocol.ORDER, Order)
    sandbox = DockerSandbox(DockerHost(docker.places.state_dir), folder, order)
    assert sandbox.bytes_seen_by_root() is None  # root sees it by itself
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    found = sandbox.bytes_seen_by_root()
    assert found is not None and 2 * LIMIT <= found < 3 * LIMIT
    monkeypatch.undo()
    docker.ask(StopSweep(sweep_id=run.sweep_id))
    docker.ended()
    docker.until_clean()


def test_an_agent_in_which_nothing_happens_is_ended(docker: DockerHarness) -> None:
    docker.agent("sleeper", "sleep 600")
    docker.agent("worker", f"for _ in $(seq 40); do echo tick; sleep 0.2; done; {SUBMIT}")
    docker.start()
    for name in ("sleeper", "worker"):
        docker.launch(name, idle_limit_seconds=5)
    sleeper, worker = sorted(docker.ended(), key=lambda run: run.sweep_id)
    assert sleeper.failure_class is FailureClass.TIMEOUT
    assert "nothing happened for" in sleeper.failure_text
    assert worker.outcome is Outcome.BELOW_MEDIAN
    docker.until_clean()


def test_processes_and_shared_memory_are_limited_by_the_kernel(docker: DockerHarness) -> None:
    limit = "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2> /dev/null"
    shm = "df --block-size=1 --output=size /dev/shm | tail -n 1 | tr -d ' '"
    docker.agent("looker", f"{limit}; {shm}; head -c 200000000 /dev/zero > /tmp/x; cp /tmp/x /dev/shm/x")
    docker.start()
    docker.launch("looker", shm_bytes=128 << 20)
    (run,) = docker.ended()
    assert docker.log(run).splitlines()[:2] == ["4096", str(128 << 20)]
    # Full shared memory is the agent's own doing and no full disk of this host.
    assert "No space left on device" in docker.log(run)
    assert run.failure_class is FailureClass.MEMORY
    docker.until_clean()


def test_a_privileged_agent_runs_only_with_the_operators_consent_and_is_marked(
    docker: DockerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker.agent("mighty", f"{SUBMIT}; {SLEEP}", extra="  privileged: true\n")
    docker.start()
    with pytest.raises(Problem, match="needs a privileged container"):
        docker.launch("mighty")
    assert docker.runs() == []
    docker.kill_engine()
    monkeypatch.setenv("I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS", "True")
    docker.start()
    docker.launch("mighty")
    if this_machine_lets_containers_be_privileged():
        (run,) = docker.until_started()
        assert docker.container_of(run)["HostConfig"]["Privileged"]
        (attempt,) = docker.attempts(run)
        assert attempt.isolated is False
        docker.ask(StopRuns(runs=shown(run)))
        docker.ended()
    else:  # the daemon was asked for it, and its refusal is told
        (run,) = docker.ended()
        assert run.failure_class is FailureClass.INFRASTRUCTURE
        assert "operation not permitted" in run.failure_text
    docker.until_clean()


def this_machine_lets_containers_be_privileged() -> bool:
    """A daemon that is itself confined can't give away all rights."""
    client = connect()
    config = client.create_host_config(privileged=True)
    made = client.create_container(BASE_IMAGE, ["true"], host_config=config)["Id"]
    try:
        client.start(made)
        return bool(client.wait(made)["StatusCode"] == 0)
    except APIError:
        return False
    finally:
        client.remove_container(made, force=True)


def test_a_name_can_not_be_looked_up_where_no_network_is(docker: DockerHarness) -> None:
    """Names are a way out as well: whoever answers them can be told things."""
    ask = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53))"
    look = f'getent hosts example.org; echo code $?; python3 -c "{ask}" 2>&1 | tail -n 1; ls /sys/class/net'
    docker.agent("asker", look)
    docker.start()
    docker.launch("asker")
    docker.launch("asker", network="models", allowed_hosts=["example.org"])
    for run in docker.ended():
        told = docker.log(run).splitlines()
        assert told[0] == "code 2"
        assert "Network is unreachable" in told[1]
        assert told[2:] == ["lo"]
    docker.until_clean()
