"""What a container leaves behind goes with the process around its command, which ends as that does."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.harness import eventually

GUARD = (sys.executable, "-I", "-m", "mlebench_console.environment.runner.process.guard", "--")
_PARENT = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(1000)"


def test_all_below_it_is_killed_when_its_parent_is_gone() -> None:
    seconds = f"1000.{secrets.randbelow(10**9)}"
    # One that descends from nobody any more, as a container's monitor, and one that does not listen.
    script = f"setsid -f sleep {seconds}; trap '' TERM; while :; do sleep {seconds}; done"
    with subprocess.Popen([sys.executable, "-c", _PARENT, *GUARD, "bash", "-c", script]) as parent:
        eventually(lambda: len(sleeping(seconds)) == 2)
        parent.kill()
    eventually(lambda: not sleeping(seconds))


def sleeping(seconds: str) -> list[str]:
    """The processes that sleep for so long."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(path.name)
        except OSError:
            continue  # it ended in between
    return found


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", -9), ("kill -15 $$", -15)])
def test_it_ends_as_its_command_does(script: str, code: int) -> None:
    done = subprocess.run([*GUARD, "bash", "-c", f"{script}; sleep 1"], check=False, timeout=60)
    assert done.returncode == code


def test_a_request_to_end_leaves_it_to_the_command() -> None:
    script = "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.05; done"
    with subprocess.Popen([*GUARD, "bash", "-c", script], stdout=subprocess.PIPE) as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == b"up\n"
        guard.send_signal(signal.SIGTERM)
        (command,) = Path(f"/proc/{guard.pid}/task/{guard.pid}/children").read_text().split()
        subprocess.run(["kill", command], check=True)
        assert guard.stdout.read() == b"asked\n"
        assert guard.wait(60) == 3
