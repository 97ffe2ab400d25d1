"""A job on its node: it runs an attempt that no other has claimed, and ends its agent when it can't write any more."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from environment.container.output import Ending
from environment.runner import protocol
from environment.runner.host import processes_of_attempt
from environment.runner.job import EXIT_CLAIMED, EXIT_FENCED, Heart
from environment.runner.protocol import Order
from foundation import jsonlines
from tests.engine.conftest import prepared_data
from tests.engine.harness import eventually
from tests.environment.runner.conftest import order

__all__ = ["order", "prepared_data"]
WAIT = 'echo begun; trap "" TERM; while :; do sleep 0.1; done'


class Node:
    """A node with a disk of its own, which begins the job of an attempt."""

    def __init__(self, folder: Path, order: Order, script: str) -> None:
        self.folder = folder / "attempt"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        protocol.make_folders(self.folder)
        (Path(order.agent_folder) / "start.sh").write_text(script)
        protocol.write(self.folder / protocol.ORDER, replace(order, runtime=protocol.PLAIN))

    def begin(self) -> subprocess.Popen[bytes]:
        job = ("--job", f"--scratch={self.scratch}")
        return subprocess.Popen(
            [sys.executable, "-m", "environment.runner", "--once", str(self.folder), *job]
        )

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
    assert ending.reason == protocol.LOST
    assert "the batch system ended its job" in ending.problem


_FENCED = """
import subprocess, sys, time
from environment.runner.job import Fence
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


def test_a_heartbeat_that_can_not_be_written_is_none(tmp_path: Path) -> None:
    heart = Heart(tmp_path, every_seconds=0.0)
    assert heart.beat(ended=False)
    (tmp_path / protocol.HEARTBEATS).unlink()
    (tmp_path / protocol.HEARTBEATS).mkdir()
    assert not heart.beat(ended=False)


def test_an_agent_goes_with_a_job_that_is_killed(tmp_path: Path, order: Order) -> None:
    node = Node(tmp_path, order, WAIT)
    with node.begin() as job:
        node.until_begun()
        job.kill()
    eventually(lambda: not processes_of_attempt(node.folder))
