"""What an agent in a container can reach: no answers as its own user or as root, no network but what it was given."""

from __future__ import annotations

import http.server
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.images import connect
from mlebench_console.engine.runs.failures import last_lines
from mlebench_console.environment.container.output import FOR_AGENT, Ending
from mlebench_console.environment.container.run_log import CUT_MARK
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import Run
from tests.docker.harness import PROBE, DockerHarness, serving
from tests.engine.harness import SUBMIT, WAIT_FOR_GO, eventually

FIND = (
    "import os, json, sys\n"
    "found = []\n"
    "for parent, folders, names in os.walk('/'):\n"
    "    if parent == '/':\n"
    "        folders[:] = [name for name in folders if name not in ('proc', 'sys', 'usr')]\n"
    "    found += [os.path.join(parent, name) for name in names\n"
    "              if 'private' in parent.split('/') or name in ('answers.csv', 'run.json', 'state.db')]\n"
    "print(json.dumps(found))\n"
)
LOOK = f"""
python3 - > "$LOGS_DIR/found.json" << 'END'
{FIND}
END
grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status > "$LOGS_DIR/status"
ls /sys/class/net > "$LOGS_DIR/interfaces"
touch /home/data/x 2> "$LOGS_DIR/data" ; ls /run/mlebench 2> "$LOGS_DIR/output"
kill -9 1 2> "$LOGS_DIR/kill"; cat /proc/1/environ > "$LOGS_DIR/environ" 2>&1
env > "$LOGS_DIR/variables"
echo "told $*"; printf 'key %s' "${{API_KEY%test}}"; sleep 0.2; echo test
{SUBMIT}; {WAIT_FOR_GO}
"""
SECRET = "sk-very-secret-value-of-a-test"


@pytest.fixture
def looking(docker: DockerHarness, monkeypatch: pytest.MonkeyPatch) -> tuple[DockerHarness, Run]:
    """An agent that has looked around and waits."""
    monkeypatch.setenv("MODEL_KEY", SECRET)
    docker.agent("looker", LOOK)
    config = docker.agents_dir / PROBE / "config.yaml"
    config.write_text(
        config.read_text()
        + "    API_KEY: ${{ secrets.MODEL_KEY }}\n"
        + "  kwargs_type: omegaconf\n  kwargs:\n    a.token: ${{ secrets.MODEL_KEY }}\n"
    )
    docker.start()
    docker.launch("looker", memory_bytes=512 << 20, cpus=0.25)
    (run,) = docker.until_started()
    eventually(lambda: docker.runs()[0].submissions)
    return docker, run


def test_an_agent_in_a_container_sees_no_answers_not_even_as_root_and_has_no_rights(
    looking: tuple[DockerHarness, Run],
) -> None:
    docker, run = looking
    logs = docker.folder(run) / protocol.LOGS
    assert json.loads((logs / "found.json").read_text()) == []
    status = dict(line.split(":\t") for line in (logs / "status").read_text().splitlines())
    assert {name: value for name, value in status.items() if name.startswith("Cap")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16
    )
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert (logs / "interfaces").read_text() == "lo\n"
    assert "Read-only" in (logs / "data").read_text()
    for name in ("output", "environ"):
        assert "denied" in (logs / name).read_text()
    assert "not permitted" in (logs / "kill").read_text()
    assert f"API_KEY={SECRET}" in (logs / "variables").read_text()
    client = connect()
    agent = docker.container_of(run)["Id"]
    begun = client.exec_create(agent, ["python3", "-c", FIND], user="0")
    assert json.loads(client.exec_start(begun["Id"])) == []
    # Nor by the network that it shares with the grader: that says valid or not, and no more.
    begun = client.exec_create(
        agent, ["/home/validate_submission.sh", "/home/submission/submission.csv"], user="0"
    )
    assert set(json.loads(client.exec_start(begun["Id"]))) == {"result"}


def test_variables_of_a_definition_reach_the_agent_and_not_the_root_that_starts_it(
    docker: DockerHarness,
) -> None:
    """`LD_PRELOAD` would run as root in the main process, and could forge the log and the ending."""
    script = f'env > "$LOGS_DIR/variables"; {WAIT_FOR_GO}'
    docker.agent("loader", script)
    config = docker.agents_dir / PROBE / "config.yaml"
    config.write_text(config.read_text() + "    LD_PRELOAD: /home/code/evil.so\n")
    docker.start()
    docker.launch("loader")
    (run,) = docker.until_started()
    container = docker.container_of(run)["Id"]
    main = connect().inspect_container(container)["State"]["Pid"]
    of_main = Path(f"/proc/{main}/environ").read_bytes().decode().split("\0")
    assert not [line for line in of_main if line.startswith(("LD_", "GLIBC_"))]
    assert "evil.so" not in Path(f"/proc/{main}/maps").read_text()
    docker.go(run)
    docker.ended()
    of_agent = (docker.folder(run) / protocol.LOGS / "variables").read_text().splitlines()
    assert "LD_PRELOAD=/home/code/evil.so" in of_agent
    assert not any(line.startswith(FOR_AGENT) for line in of_agent)


def holding_the_secret() -> list[Path]:
    found = Path("/dev/shm").glob("mlebench-console-*/*.json")
    return [path for path in found if SECRET.encode() in path.read_bytes()]


def test_secrets_are_in_no_configuration_no_arguments_no_log_and_no_file(
    looking: tuple[DockerHarness, Run],
) -> None:
    docker, run = looking
    assert docker.containers()
    for one in docker.containers():
        assert SECRET not in json.dumps(connect().inspect_container(one["Id"]))
    own = docker.folder(run) / protocol.LOGS
    written = [
        path for path in docker.places.state_dir.rglob("*") if path.is_file() and own not in path.parents
    ]
    assert written
    for path in written:
        assert SECRET.encode() not in path.read_bytes(), path
    assert docker.log(run) == "told a.token=[secret]\nkey [secret]\n"
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended in between
            assert SECRET.encode() not in process.read_bytes()
    # While the agent lives, memory of ours alone holds what copies of its code are searched for, and nothing else does.
    assert {"".join(path.suffixes) for path in holding_the_secret()} == {".hidden.json"}
    docker.go(run)
    assert docker.ended()[0].outcome is Outcome.BELOW_MEDIAN
    assert not holding_the_secret()
    # What the agent itself has written is handed on with results, so it is clean in the end.
    assert "API_KEY=[secret]" in (own / "variables").read_text()
    for path in docker.places.state_dir.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_containers_have_their_limits_and_labels_and_start_only_once(
    looking: tuple[DockerHarness, Run],
) -> None:
    docker, run = looking
    agent = docker.container_of(run)
    host = agent["HostConfig"]
    assert host["Memory"] == host["MemorySwap"] == 512 << 20
    assert host["PidsLimit"] > 0
    assert host["NanoCpus"] == round(0.25 * 1e9)
    assert host["RestartPolicy"]["Name"] == "no"
    assert not host["AutoRemove"]
    assert not host["Privileged"]
    assert sorted(host["CapAdd"]) == ["KILL", "SETGID", "SETPCAP", "SETUID"]
    assert [mount["Source"] for mount in agent["Mounts"] if "private" in mount["Source"]] == []
    labels = agent["Config"]["Labels"]
    assert labels["mlebench.sweep"] == run.sweep_id
    assert labels["mlebench.competition"] == run.competition_id
    assert labels["mlebench.seed"] == "1"
    client = connect()
    docker.kill_engine()
    docker.kill_runner()  # it would remove the container under our hands
    client.kill(agent["Id"])
    client.wait(agent["Id"])
    client.start(agent["Id"])
    assert client.wait(agent["Id"])["StatusCode"] == 75
    docker.start()
    (ended,) = docker.ended()
    assert ended.failure_class is FailureClass.INFRASTRUCTURE
    assert (docker.folder(run) / protocol.CODE / "starts").read_text() == "start\n"


@contextmanager
def web_server(address: str) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"hello {self.path} {self.headers['Host']}".encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(address, Handler) as port:
        yield port


def fetch(url: str, name: str, *, through: str = "") -> str:
    return f'curl -s -m 10 {through} {url} > "$LOGS_DIR/{name}"; echo "code $?" >> "$LOGS_DIR/{name}"\n'


def test_the_network_for_models_leads_to_the_named_hosts_and_nowhere_else(docker: DockerHarness) -> None:
    address = docker.gateway()
    with web_server(address) as allowed, web_server(address) as other:
        script = (
            fetch(f"http://{address}:{allowed}/a?b", "allowed")
            + fetch(f"http://{address}:{allowed}/tunnel", "tunnel", through="--proxytunnel")
            + fetch(f"http://{address}:{other}/", "other")
            + fetch(f"http://{address}:{other}/", "other-tunnel", through="--proxytunnel")
            + fetch(f"http://{address}:{allowed}/", "direct", through="--noproxy '*'")
            + fetch("http://example.org/", "by-name", through="--noproxy '*'")
            + SUBMIT
        )
        docker.agent("caller", script)
        docker.start()
        docker.launch("caller", network="models", allowed_hosts=[f"{address}:{allowed}"])
        (run,) = docker.ended()
    told = {path.name: path.read_text() for path in (docker.folder(run) / protocol.LOGS).iterdir()}
    assert told["allowed"] == f"hello /a?b {address}:{allowed}code 0\n"
    assert told["tunnel"].startswith("hello /tunnel")
    assert "not among the hosts" in told["other"]
    for name in ("other-tunnel", "direct", "by-name"):
        assert "hello" not in told[name]
        assert not told[name].endswith("code 0\n")
    docker.until_clean()


def test_an_open_network_has_a_way_out(docker: DockerHarness) -> None:
    address = docker.gateway()
    with web_server(address) as port:
        docker.agent("caller", fetch(f"http://{address}:{port}/", "out") + SUBMIT)
        docker.start()
        docker.launch("caller", network="open")
        (run,) = docker.ended()
    assert "hello" in (docker.folder(run) / protocol.LOGS / "out").read_text()
    docker.until_clean()


TRICKS = {
    "link": ('ln -s /run/prepared/private/answers.csv "$SUBMISSION_DIR/submission.csv"', "symbolic link"),
    "fifo": ('mkfifo "$SUBMISSION_DIR/submission.csv"', "not a regular file"),
    "folder": (
        'mkdir "$SUBMISSION_DIR/submission.csv"; chmod 000 "$SUBMISSION_DIR/submission.csv"',
        "not a regular",
    ),
    "socket": (
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/home/submission/submission.csv')\"",
        "No such device",
    ),
    "device": ('mknod "$SUBMISSION_DIR/submission.csv" c 1 5 && echo made', ""),
}


def test_what_is_no_file_is_no_submission(docker: DockerHarness) -> None:
    for name, (trick, _) in TRICKS.items():
        docker.agent(name, f"{trick}; head -c 3000 /dev/urandom")
    docker.start()
    for name in TRICKS:
        docker.launch(name)
    for run in docker.ended():
        assert run.outcome is Outcome.NO_SUBMISSION
        ended = protocol.read(docker.folder(run) / protocol.EXIT, Ending)
        assert TRICKS[run.sweep_id.rpartition("-")[0]][1] in ended.submission_problem
        assert "made" not in docker.log(run)


def test_a_huge_log_keeps_its_beginning_and_its_end(docker: DockerHarness) -> None:
    docker.agent("chatty", "head -c 1200000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 4")
    docker.start()
    docker.launch("chatty", cpus=1)
    (run,) = docker.ended()
    folder = docker.folder(run) / protocol.OUTPUT
    assert last_lines(docker.folder(run) / protocol.LOG).rstrip().endswith("the end")
    assert sum(path.stat().st_size for path in folder.glob("run.log*")) <= (1 << 30) + 1000
    assert (folder / "run.log").read_bytes().endswith(CUT_MARK)
