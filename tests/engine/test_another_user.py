"""What another user of the host can do with the runs of an operator, while they live and afterwards: nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.state.lifecycle import RunState
from tests.engine.harness import SUBMIT, WAIT_FOR_GO, Harness, eventually

pytestmark = pytest.mark.usefixtures("root", "bubblewrap")

NOBODY = 65534
LEAVES_SETUID = (
    'for d in "$CODE_DIR" "$LOGS_DIR" "$SUBMISSION_DIR"; do mkdir "$d/in"; cp "$(command -v id)" "$d/in/id";'
    ' chmod 6755 "$d/in/id"; chmod 2777 "$d/in"; done; touch "$CODE_DIR/ready"'
)
ATTACK = f"""
import json, os, socket, subprocess, sys
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
os.umask(0)
done = []
def attempt(what, action):
    try:
        action()
        done.append(what)
    except OSError:
        pass
for path in sys.argv[1:]:
    attempt("read " + path, lambda: open(path, "rb").read(1))
    attempt("list " + path, lambda: os.listdir(path))
    attempt("write " + path, lambda: open(path + "/by another" if os.path.isdir(path) else path, "ab").close())
    attempt("connect " + path, lambda: socket.socket(socket.AF_UNIX).connect(path))
    attempt("run " + path, lambda: subprocess.run([path], stdout=subprocess.DEVNULL, check=False))
print(json.dumps(done))
"""


@pytest.fixture
def shared_host(on_disk: Path, prepared_data: Path, empty_state: Path) -> Iterator[Harness]:
    """An engine whose state lies where others may go, started with a umask that closes nothing."""
    on_disk.chmod(0o755)
    made = Harness(
        Places(on_disk / "config.toml", prepared_data, on_disk / "state"), on_disk / "agents", empty_state
    )
    before = os.umask(0)
    try:
        made.start()
    finally:
        os.umask(before)
    yield made
    made.close()


def attack(*paths: Path) -> list[str]:
    """Return what another user can do with files and sockets of known paths."""
    command = [sys.executable, "-I", "-c", ATTACK, *map(str, paths)]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("runtime", ["bubblewrap", "plain"])
def test_another_user_reads_writes_and_becomes_nothing(shared_host: Harness, runtime: str) -> None:
    state = shared_host.places.state_dir
    shared_host.agent("leaver", f"{LEAVES_SETUID}; {SUBMIT}; {WAIT_FOR_GO}")
    shared_host.launch("leaver", runtime=runtime)
    (run,) = shared_host.until_started()
    folder = shared_host.folder(run)
    eventually((folder / protocol.CODE / "ready").exists)
    programs = [folder / name / "in" / "id" for name in (protocol.CODE, protocol.LOGS, protocol.SUBMISSION)]
    while_it_runs = [state, *state.rglob("*")]
    sockets = [path for path in while_it_runs if path.is_socket()]
    assert {protocol.VALIDATION_SOCKET} <= {path.name for path in sockets}
    assert all(path.stat().st_mode & stat.S_ISUID for path in programs)
    assert attack(*while_it_runs) == []
    state.chmod(0o755)  # as its operator may do while it is used; the runs stay closed
    assert attack(*(path for path in while_it_runs if path.is_relative_to(folder))) == []
    state.chmod(0o700)
    shared_host.go(run)
    (run,) = shared_host.ended()
    assert run.state is RunState.FINISHED
    assert attack(state, *state.rglob("*")) == []
    for path in [folder, *folder.rglob("*")]:
        assert not stat.S_IMODE(path.lstat().st_mode) & (stat.S_ISUID | stat.S_ISGID), path
