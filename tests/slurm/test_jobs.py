"""A job on its node: it runs an attempt that no other has claimed, and ends its agent when it can't write any more."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from mlebench_console.engine.placements.staging import Images
from mlebench_console.engine.runs.failures import classify
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.host.readings import processes_of_attempt
from mlebench_console.environment.runner.host.store import store_of_node
from mlebench_console.environment.runner.job import (
    EXIT_CLAIMED,
    EXIT_FENCED,
    HeartbeatWriter,
    seconds_between_polls,
)
from mlebench_console.environment.runner.protocol import GivenGpus, Order, StagingOrder, Stop
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.transitions import Failure
from tests.conditions import changed
from tests.engine.conftest import prepared_data
from tests.engine.harness import eventually
from tests.engine.test_model_gateway import Elsewhere, elsewhere
from tests.environment.gateway.provider import KEY, TEXT
from tests.environment.runner.conftest import order
from tests.environment.runner.orders import order_with

__all__ = ["elsewhere", "order", "prepared_data"]
WAIT = 'echo begun; trap "" TERM; while :; do sleep 0.1; done'


class Node:
    """A node with a disk of its own, which begins the job of an attempt."""

    def __init__(
        self,
        folder: Path,
        order: Order,
        script: str,
        *,
        runtime: str = protocol.PLAIN,
        staging: StagingOrder | None = None,
        name: str = "attempt",
    ) -> None:
        self.variables: dict[str, str] = {}
        self.folder = folder / name
        self.scratch = folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        protocol.make_folders(self.folder)
        (Path(order.agent_folder) / "start.sh").write_text(script)
        protocol.write(self.folder / protocol.ORDER, changed(order, runtime=runtime))
        if staging is not None:
            protocol.write(self.folder / protocol.STAGING, staging)

    def begin(self) -> subprocess.Popen[bytes]:
        job = ("--job", f"--scratch={self.scratch}")
        return subprocess.Popen(
            [sys.executable, "-m", "mlebench_console.environment.runner", "--once", str(self.folder), *job],
            env=os.environ | {"SLURM_JOB_ID": "7"} | self.variables,
        )

    def run(self) -> Ending:
        """Run the job to its end, and return how the attempt ended."""
        with self.begin() as job:
            assert job.wait() == 0
        return protocol.read(self.folder / protocol.EXIT, Ending)

    def events(self) -> list[dict[str, Any]]:
        return list(jsonlines.read(self.folder / protocol.EVENTS).values)

    def until_begun(self) -> None:
        log = self.folder / protocol.LOG
        eventually(lambda: log.exists() and log.read_text() == "begun\n")


def test_a_job_keeps_the_node_tidy_and_a_second_one_of_the_attempt_does_nothing(
    tmp_path: Path, order: Order
) -> None:
    node = Node(tmp_path, order, 'echo "a,b" > "$SUBMISSION_DIR/submission.csv"; exit 3')
    with node.begin() as first:
        assert first.wait() == 0
    before = {path: path.lstat().st_mtime_ns for path in node.folder.rglob("*")}
    with node.begin() as second:
        assert second.wait() == EXIT_CLAIMED
    assert {path: path.lstat().st_mtime_ns for path in node.folder.rglob("*")} == before
    assert protocol.read(node.folder / protocol.EXIT, Ending).exit_code == 3
    assert list(node.scratch.iterdir()) == []
    assert not [path for path in node.folder.iterdir() if path.is_symlink() and path.is_dir()]
    beats = [
        protocol.heartbeat_from_line(line)
        for line in jsonlines.read(node.folder / protocol.HEARTBEATS).values
    ]
    assert beats[-1] is not None
    assert beats[-1].ended
    assert beats[-1].events == (node.folder / protocol.EVENTS).stat().st_size


def test_a_job_that_is_told_to_end_ends_its_agent_and_says_who_did_it(tmp_path: Path, order: Order) -> None:
    node = Node(tmp_path, order, WAIT)
    with node.begin() as job:
        node.until_begun()
        job.send_signal(signal.SIGTERM)
        assert job.wait() == 0
    ending = protocol.read(node.folder / protocol.EXIT, Ending)
    assert ending.reason == EndReason.LOST
    assert "the batch system ended its job" in ending.problem
    assert ending.problem_code == ProblemCode.JOB_ENDED


_FENCED = """
import subprocess, sys, time
from mlebench_console.environment.runner.host.store import store_of_node
from mlebench_console.environment.runner.job import Fence
agent = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(agent.pid, flush=True)
Fence(0.2).start()
time.sleep(1000)
"""


def test_a_job_that_could_write_nothing_for_too_long_ends_its_agent_and_itself() -> None:
    done = subprocess.run([sys.executable, "-c", _FENCED], capture_output=True, timeout=120, check=False)
    assert done.returncode == EXIT_FENCED
    agent = Path("/proc", done.stdout.decode().strip())
    eventually(lambda: not agent.exists() or "State:\tZ" in (agent / "status").read_text())


_SUSPENDED = """
import time
from mlebench_console.environment.runner.host.store import store_of_node
from mlebench_console.environment.runner.job import Fence
fence = Fence(2.0)
fence.start()
print("began", flush=True)
for _ in range(40):
    time.sleep(0.1)
    fence.note_heartbeat()
"""


def test_a_job_that_was_suspended_for_long_goes_on() -> None:
    job = subprocess.Popen([sys.executable, "-c", _SUSPENDED], stdout=subprocess.PIPE)
    assert job.stdout is not None
    assert job.stdout.readline() == b"began\n"
    job.send_signal(signal.SIGSTOP)
    time.sleep(3.0)
    job.send_signal(signal.SIGCONT)
    job.communicate()
    assert job.returncode == 0


def test_a_heartbeat_that_can_not_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeats = HeartbeatWriter(tmp_path, order_with(), every_seconds=0.0)
    (tmp_path / protocol.HEARTBEATS).mkdir()
    assert not heartbeats.write(None)
    (tmp_path / protocol.HEARTBEATS).rmdir()
    assert heartbeats.write(None)
    monkeypatch.setattr(os, "fsync", unwritable)
    assert not heartbeats.write(None)
    monkeypatch.undo()
    assert heartbeats.write(None)
    heartbeats.close()
    numbers = [line["number"] for line in jsonlines.read(tmp_path / protocol.HEARTBEATS).values]
    assert numbers == [0, 1, 1]


def unwritable(_descriptor: int) -> None:
    """Fail as a file system does that is gone for a while."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_job_looks_as_often_as_its_promises_ask_for() -> None:
    usual, day = order_with(grade_every_seconds=60), 86_400.0
    assert seconds_between_polls(1, usual, 300) == 1
    assert seconds_between_polls(600, usual, 300) == 10
    assert seconds_between_polls(day, usual, 300) == 30
    assert seconds_between_polls(day, order_with(grade_every_seconds=10), 300) == 5
    assert seconds_between_polls(day, usual, 20) == 5


def arguments_of_all() -> list[list[str]]:
    """Return the arguments of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text(errors="replace").split("\0"))
    return found


@pytest.mark.usefixtures("squashed_images")
def test_an_agent_goes_with_a_job_that_is_killed_and_the_next_job_of_its_node_tidies_up(
    tmp_path: Path, order: Order
) -> None:
    images = Images()
    staging = eventually(lambda: images.order(Path(order.prepared_dir), SlurmProfile(staging="squashfs")))
    node = Node(tmp_path, order, WAIT, staging=staging)
    with node.begin() as job:
        node.until_begun()
        (local,) = node.scratch.glob("mlebench-job-*")
        assert (local / "dataset" / "public").is_mount()
        servers = [
            line for line in arguments_of_all() if "mlebench_console.environment.validation_server" in line
        ]
        (prepared,) = [
            each.removeprefix("--prepared=")
            for line in servers
            if f"--record={node.folder / protocol.VALIDATIONS}" in line
            for each in line
            if each.startswith("--prepared=")
        ]
        assert [path.name for path in Path(prepared).iterdir()] == ["public"]  # it is given no answer
        job.kill()
    eventually(lambda: not processes_of_attempt(node.folder))
    assert local.exists()
    following = Node(tmp_path, order, "echo begun", name="next")
    following.run()
    eventually(lambda: not list(node.scratch.glob("mlebench-job-*")))
    assert str(local) not in Path("/proc/self/mountinfo").read_text()


def test_a_node_without_a_place_for_a_job_is_no_fault_of_the_agent(tmp_path: Path, order: Order) -> None:
    node = Node(tmp_path, order, "echo begun")
    node.scratch.rmdir()
    ending = node.run()
    assert ending.reason == EndReason.LOST
    assert f"has no place for it in {node.scratch}" in ending.problem


_ATTACK = r"""
cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"
bash "$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv"
ls "$DATA_DIR"
cat /proc/*/cmdline /proc/*/environ | tr "\0" "\n"
for place in $TARGETS; do
  cat "$place" 2>/dev/null && echo "read $place"
  ls "$place" 2>/dev/null && echo "listed $place"
done
ls -A /dev/shm | sed "s/^/found /"
find / -xdev \( -name private -o -name run.json -o -name exit.json -o -name staging.json -o -name secrets.json \) \
    -not -path "/proc/*" -not -path "/usr/*" -not -path "*/site-packages/*" 2>/dev/null | sed "s/^/found /"
(cd "$DATA_DIR" && ls ../private ../../private private; cat ../private/test.csv) 2>/dev/null
touch "$DATA_DIR/mine" && echo "wrote to the data"
"""


@pytest.mark.parametrize("mode", [None, "copy", "squashfs"])
def test_an_agent_that_attacks_finds_no_answer_no_other_run_and_nothing_of_its_job(
    tmp_path: Path, order: Order, bubblewrap: None, mode: Literal["copy", "squashfs"] | None
) -> None:
    prepared, images, staging = Path(order.prepared_dir), Images(), None
    if mode is not None:
        profile = SlurmProfile(staging=mode)
        staging = eventually(lambda: images.order(prepared, profile))
    other = tmp_path / "runs" / "other-attempt"
    other.mkdir(parents=True)
    (other / protocol.ORDER).write_text("of another")
    targets = f"{prepared} {prepared}/private/test.csv {other / protocol.ORDER} {tmp_path}"
    script = f"TARGETS='{targets}'\n{_ATTACK}"
    node = Node(tmp_path, order, script, runtime=protocol.BUBBLEWRAP, staging=staging)
    ending = node.run()
    log = (node.folder / protocol.LOG).read_text()
    assert ending.submission_sequence is not None, log
    assert "The submission is valid" in log
    answer = (prepared / "private" / "test.csv").read_text().splitlines()[1]
    assert answer not in log
    for sign in ("read /", "listed ", "found ", "wrote to the data", "private", "SLURM_", "of another"):
        assert sign not in log.replace(script, ""), log
    assert [event["kind"] for event in node.events()][: 1 + bool(mode)] == [
        *(["staged"] if mode else []),
        "started",
    ]
    left = [path for path in node.scratch.rglob("*") if path.is_file()]
    assert not [path for path in left if answer.encode() in path.read_bytes()]
    assert bool(left) == bool(mode)  # the dataset stays for the next job, and nothing of the attempt


@pytest.mark.parametrize("who", ["operator", "batch system"])
def test_a_run_that_is_to_end_while_its_data_come_ends_at_once_and_never_begins(
    tmp_path: Path, order: Order, who: str
) -> None:
    staging = Images().order(Path(order.prepared_dir), SlurmProfile(staging="copy"))
    assert staging is not None
    node = Node(tmp_path, order, "echo begun", staging=staging)
    with FileLock(store_of_node(node.scratch) / f"{staging.sha256}.work") as work:
        assert work.acquire()
        with node.begin() as job:
            beats = node.folder / protocol.HEARTBEATS
            eventually(lambda: any(line["to_stage"] is not None for line in jsonlines.read(beats).values))
            if who == "operator":
                protocol.write(node.folder / protocol.STOP, Stop("me", 1.0))
            else:
                job.send_signal(signal.SIGTERM)
            assert job.wait() == 0
    ending = protocol.read(node.folder / protocol.EXIT, Ending)
    assert ending.reason == ("stopped" if who == "operator" else EndReason.LOST)
    assert ending.started_at is None
    assert not (node.folder / protocol.LOG).exists()


def test_data_that_can_not_be_brought_are_no_fault_of_the_agent_and_the_end_says_why(
    tmp_path: Path, order: Order
) -> None:
    node = Node(tmp_path, order, "echo begun", staging=StagingOrder(protocol.COPY, "0" * 64))
    ending = node.run()
    assert ending.reason == EndReason.LOST
    assert "its dataset could not be brought to the node" in ending.problem
    assert "expected SHA-256 0000" in ending.problem
    failure = classify(ending, "", isolated=None)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureClass.INFRASTRUCTURE
    assert not (node.folder / protocol.LOG).exists()


def test_an_agent_sees_the_devices_of_its_job_and_no_others(
    tmp_path: Path, order: Order, bubblewrap: None
) -> None:
    script = 'echo "gpus $CUDA_VISIBLE_DEVICES" && ls /dev && echo x > /dev/shm/x && ! echo x > /dev/x'
    node = Node(tmp_path, changed(order, gpus=2), script, runtime=protocol.BUBBLEWRAP)
    node.variables["CUDA_VISIBLE_DEVICES"] = "0,1"
    assert node.run().exit_code == 0
    log = (node.folder / protocol.LOG).read_text()
    assert "gpus 0,1\n" in log
    assert "tty1\n" not in log
    assert protocol.read_order(node.folder).gpu_uuids == ()  # no driver here can name them


def test_the_files_of_given_devices_are_in_the_sandbox(
    tmp_path: Path, order: Order, bubblewrap: None
) -> None:
    node = Node(tmp_path, order, "ls /dev", runtime=protocol.BUBBLEWRAP)
    protocol.write(node.folder / protocol.GPUS, GivenGpus("0", ("GPU-a",), ("/dev/tty1",)))
    node.run()
    devices = (node.folder / protocol.LOG).read_text().split()
    assert "tty1" in devices
    assert "tty2" not in devices


def test_a_job_that_was_given_no_gpus_is_no_fault_of_the_agent(tmp_path: Path, order: Order) -> None:
    node = Node(tmp_path, changed(order, gpus=1), "echo begun")
    node.variables["CUDA_VISIBLE_DEVICES"] = ""
    ending = node.run()
    assert ending.reason == EndReason.LOST
    assert "the job was given no GPUs" in ending.problem
    assert not (node.folder / protocol.LOG).exists()


_ASK_MODEL = """
body='{"model": "plain", "messages": [{"role": "user", "content": "Hello?"}]}'
"$MLEBENCH_ENV_AGENT/bin/python" -c '
import os, sys, urllib.request
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    sys.argv[1].encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
)
print(urllib.request.urlopen(request).read().decode())
' "$body"
"""


def test_an_agent_of_a_job_reaches_models_through_a_gateway_on_its_node_and_no_key_is_left(
    tmp_path: Path, order: Order, bubblewrap: None, elsewhere: Elsewhere
) -> None:
    provider = ModelProvider("openai", "openai", elsewhere.url, "OPENAI_API_KEY", requests_per_minute=6)
    with_models = replace(order, providers=(provider,), model_token="sk-mlebench-x")
    node = Node(tmp_path, with_models, _ASK_MODEL, runtime=protocol.BUBBLEWRAP)
    of_engine = tmp_path / "state" / "attempt"
    secrets.leave_keys(of_engine, {"OPENAI_API_KEY": KEY})
    secrets.send(of_engine, node.folder)
    before = {path.name for path in secrets.memory_folder().iterdir()}
    assert node.run().exit_code == 0
    (call,) = jsonlines.read(node.folder / protocol.MODEL_CALLS).values
    assert call["outcome"] == "ok"
    assert TEXT in (node.folder / protocol.LOG).read_text()
    assert KEY not in (node.folder / protocol.LOG).read_text()
    left = [path for path in secrets.memory_folder().iterdir() if path.name not in before]
    assert [path.suffix for path in left] == [".rate"]  # its own, not that of this host's runs
    assert not (node.folder / "secrets.json").exists()
    for path in left:
        path.unlink()
