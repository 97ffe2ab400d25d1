"""Killing and starting the test machine's own daemon, which must serve nobody else."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from mlebench_console.engine.images import connect
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner.docker.sandbox import LABEL_STATE
from mlebench_console.foundation.problems import Problem
from tests.engine.harness import eventually

_PID_FILE = Path("/var/run/docker.pid")
_CONTAINERD_PID_FILE = Path("/var/run/docker/containerd/containerd.pid")


def kill_and_restart_the_daemon() -> None:
    """Kill -9 dockerd and start it again as it was started; refuse where that would hurt somebody."""
    foreign = [one["Names"] for one in connect().containers() if LABEL_STATE not in one["Labels"]]
    if foreign or os.getuid() != 0 or not _PID_FILE.exists():
        pytest.fail(f"this test kills dockerd: it must run as root, beside no other container ({foreign})")
    pid = int(_PID_FILE.read_text())
    command = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    # Its own containerd dies with it; a daemon that takes a dead one for living waits for it in vain.
    helpers = [child.pid for child in process_tree().get(pid, ())]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: all(_is_gone(one) for one in (pid, *helpers)))
    for file in (_PID_FILE, _CONTAINERD_PID_FILE):
        file.unlink(missing_ok=True)
    start = '"$@" >>/tmp/mlebench-test-dockerd.log 2>&1 </dev/null &'
    # Through a shell that ends at once, so that the daemon is nobody's child.
    subprocess.run(["setsid", "sh", "-c", start, "sh", *command], check=True)
    eventually(_answers)


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return True


def _answers() -> bool:
    try:
        connect()
    except Problem:
        return False
    return True
