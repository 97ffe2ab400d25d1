"""The limits of an attempt in the process runtime are those of its whole process tree, whoever holds them."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.processes import Process, process_tree
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process import containment
from mlebench_console.environment.runner.process.containment import EnforcedLimits, in_scope, limits_here
from mlebench_console.environment.runner.protocol import Order
from tests.conditions import changed
from tests.environment.runner import contained_program
from tests.environment.runner.test_shim import ending, run

PATIENCE = 60.0
MIB = 1 << 20

SIX_TIMES_100_MB = """
import subprocess, sys, time
child = "import sys, time; held = b'x' * (100 << 20); print('held', flush=True); time.sleep(60)"
children = [subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE) for _ in range(6)]
held = sum(one.stdout.readline() == b"held\\n" for one in children)
time.sleep(3)  # for a watcher to look
print(held, "are held", sum(one.poll() is None for one in children), "live", flush=True)
for one in children: one.kill()
"""
SHARED_BY_SIX = """
import mmap, os, time
shared = mmap.mmap(-1, 100 << 20)
shared.write(b"x" * (100 << 20))
for _ in range(5):
    if os.fork() == 0:
        sum(shared[place] for place in range(0, 100 << 20, 4096))
        time.sleep(2)
        os._exit(0)
for _ in range(5): os.wait()
print("all have ended")
"""
NAMELESS_FILE = """
import os, time
file = os.memfd_create("x")
for _ in range(300): os.write(file, b"x" * (1 << 20))
print("written", flush=True)
time.sleep(60)
"""
FIRST_THREAD_ENDED = """
import ctypes, os, threading, time
def go_on():
    time.sleep(1)
    held = b"x" * (400 << 20)
    time.sleep(4)
    print("4 live, of 100 MB each", flush=True)
    os._exit(0)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""
# Forks as a bomb does, but never more than this machine can bear.
FORKS = """
import os, sys, time
count = 0
try:
    while count < 400:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count, "forks", flush=True)
time.sleep(2)
"""


def contained(folder: Path, script: str, *, with_groups: bool, **limits: Any) -> Ending:
    usual = {"memory_bytes": 2 << 30, "processes": 1000, "shm_bytes": 1 << 30, "cpus": 2.0}
    options = {
        "folder": str(folder),
        "name": f"test-{secrets.token_hex(4)}",
        "command": [sys.executable, "-c", script],
        "deadline": 15,
        "with_groups": with_groups,
        "limits": usual | limits,
    }
    subprocess.run(
        [sys.executable, contained_program.__file__, json.dumps(options)], timeout=PATIENCE, check=True
    )
    return Ending(**json.loads((folder / "ending.json").read_text()))


@pytest.mark.parametrize("with_groups", [True, False], ids=["kernel", "watcher"])
@pytest.mark.parametrize(
    "script",
    [SIX_TIMES_100_MB, NAMELESS_FILE, FIRST_THREAD_ENDED],
    ids=["processes", "file without name", "first thread ended"],
)
def test_memory_is_limited_for_the_tree_and_not_for_each_process(
    tmp_path: Path, script: str, *, with_groups: bool
) -> None:
    ended = contained(tmp_path, script, with_groups=with_groups, memory_bytes=300 * MIB)
    # Each may have held its 100 MB for a moment, but no more of them than fit are left alive.
    printed = re.search(r"(\d+) live", (tmp_path / "run.log").read_text())
    assert printed is None or int(printed[1]) * 100 <= 300
    if ended.reason == "memory":
        assert "at most 314,572,800 are allowed" in ended.problem
    else:
        assert ended.oom_kills > 0


@pytest.mark.parametrize("with_groups", [True, False], ids=["kernel", "watcher"])
def test_memory_that_processes_share_is_counted_once(tmp_path: Path, *, with_groups: bool) -> None:
    ended = contained(tmp_path, SHARED_BY_SIX, with_groups=with_groups, memory_bytes=300 * MIB)
    assert (ended.reason, ended.exit_code, ended.oom_kills) == ("exited", 0, 0)
    assert (tmp_path / "run.log").read_text() == "all have ended\n"


@pytest.mark.parametrize("with_groups", [True, False], ids=["kernel", "watcher"])
def test_a_storm_of_forks_ends_at_the_limit_of_processes(tmp_path: Path, *, with_groups: bool) -> None:
    ended = contained(tmp_path, FORKS, with_groups=with_groups, processes=100)
    assert "400 forks" not in (tmp_path / "run.log").read_text() or ended.reason == "processes"
    if ended.reason == "processes":
        assert ended.problem.endswith("at most 100 are allowed")
    assert ended.survivors == 0


@pytest.mark.usefixtures("bubblewrap")
def test_six_processes_of_100_mb_do_not_fit_into_an_attempt_of_300(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    (Path(order.agent_folder) / "six.py").write_text(SIX_TIMES_100_MB)
    run(folder, changed(order, memory_bytes=300 * MIB), 'python "$AGENT_DIR/six.py"')
    assert "6 are held 6 live" not in (folder / protocol.LOG).read_text()
    assert ending(folder).reason == "memory" or ending(folder).oom_kills > 0


@pytest.mark.usefixtures("bubblewrap")
def test_shared_memory_has_a_size_and_the_rest_of_dev_is_closed(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    script = (
        "dd if=/dev/zero of=/dev/shm/big bs=1M count=60 2>&1 | tail -n1\n"
        "rm -f /dev/shm/big; touch /dev/file 2>&1\n"
        'python -c \'import multiprocessing as m; s = m.Semaphore(); b = m.Array("i", 10); '
        "from multiprocessing import shared_memory; shared_memory.SharedMemory(create=True, size=1 << 20).unlink(); "
        "print(m.Pool(2).map(abs, [-1, -2]))'\n"
    )
    run(folder, changed(order, shm_bytes=50 * MIB), script)
    log = (folder / protocol.LOG).read_text()
    assert "62914560 bytes" not in log
    assert "Read-only file system" in log
    assert "[1, 2]" in log, "what ordinary programs share memory with still works"


@pytest.mark.usefixtures("bubblewrap")
def test_an_agent_gets_its_processors_and_no_more(tmp_path: Path, order: Order) -> None:
    if not limits_here(isolated=True).processors:
        pytest.skip("nothing holds processors on this machine")
    folder = tmp_path / "attempt"
    work = "import time; end = time.time() + 3\nwhile time.time() < end: pass\nprint(time.process_time())"
    (Path(order.agent_folder) / "work.py").write_text(work)
    run(folder, changed(order, cpus=0.3), 'python "$AGENT_DIR/work.py"')
    assert float((folder / protocol.LOG).read_text()) < 1.8


CALLS = r"""
import ctypes, errno, os, platform, socket, threading
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    print(name, "works" if result >= 0 else errno.errorcode[ctypes.get_errno()])

call("unshare", 0x10000000)
call("mount", b"none", b"/tmp", b"tmpfs", 0, None)
call("umount2", b"/tmp", 0)
numbers = {"x86_64": (250, 321, 323, 56, 435), "aarch64": (219, 280, 282, 220, 435)}[platform.machine()]
for number, arguments in zip(numbers, ((0, -3, 1), (0, 0, 0), (0,), (0x10000000 | 17, 0, 0, 0, 0), (0, 0))):
    result = libc.syscall(number, *arguments)
    print(number, "works" if result >= 0 else errno.errorcode[ctypes.get_errno()])
    if result == 0 and number == numbers[3]: os._exit(0)
call("socket", 40, 1, 0)
call("socket", 1, 1, 0)
call("ioctl", 0, 0x5412, b"x")
call("ioctl", 0, ctypes.c_ulong(0x100005412), b"x")
thread = threading.Thread(target=lambda: print("a thread works")); thread.start(); thread.join()
if os.fork() == 0: os._exit(0)
os.wait(); print("a fork works")
"""


@pytest.mark.usefixtures("bubblewrap")
def test_system_calls_that_break_out_of_sandboxes_are_refused(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    (Path(order.agent_folder) / "calls.py").write_text(CALLS)
    run(
        folder, order, 'python "$AGENT_DIR/calls.py" < /dev/null\nunshare --user true || echo "no namespaces"'
    )
    log = (folder / protocol.LOG).read_text().splitlines()
    assert [line.split()[1] for line in log[:12]] == [
        *["EPERM"] * 7,
        *("ENOSYS", "EPERM", "works"),
        *["EPERM"] * 2,
    ]
    assert log[12:14] == ["a thread works", "a fork works"]
    assert log[-1] == "no namespaces"


@pytest.mark.usefixtures("bubblewrap")
def test_numpy_computes_in_the_sandbox(tmp_path: Path, order: Order) -> None:
    folder = tmp_path / "attempt"
    run(folder, order, "python -c 'import numpy; m = numpy.ones((300, 300)); print((m @ m).sum())'")
    assert (folder / protocol.LOG).read_text() == "27000000.0\n"


def test_what_is_not_enforced_is_named() -> None:
    group = "control group v2"
    all_held = EnforcedLimits(group, group, group, group, "bubblewrap", "seccomp")
    assert all_held.unenforced == ()
    some = replace(all_held, processors="", memory="a watcher", system_calls="")
    assert some.unenforced == ("processors", "system_calls")
    assert some.in_words() == (
        "memory by a watcher; processes, shared memory by control group v2; user namespaces by bubblewrap; "
        "not enforced: processors, system calls"
    )


def test_no_group_is_left_over(tmp_path: Path, order: Order) -> None:
    run(tmp_path / "attempt", changed(order, runtime=protocol.PLAIN, token="of-this-test"), "true")
    assert not list(Path("/sys/fs/cgroup").glob("**/mlebench-of-this-test"))


def test_what_a_killed_shim_leaves_in_its_groups_is_killed_and_they_are_removed() -> None:
    name = f"test-{secrets.token_hex(4)}"
    groups = containment._make_groups(f"mlebench-{name}")
    if not groups:
        pytest.skip("no control groups can be made on this machine")
    with subprocess.Popen(["sleep", "600"]) as left:
        for group in set(groups.values()):
            (group / "cgroup.procs").write_text(str(left.pid))
        while not containment.end_leftovers(name):
            pass
        assert left.wait() < 0
    assert not any(group.exists() for group in groups.values())


def test_groups_of_version_2_are_given_all_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On folders that look like control groups, where the kernel has others."""
    for folder in (tmp_path, tmp_path / "user.slice", tmp_path / "user.slice" / "run.scope"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpu memory pids\n")
        (folder / "cgroup.subtree_control").write_text("cpu memory pids\n")
        (folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
    monkeypatch.setattr(containment, "_mounts", lambda: [containment._Mount(tmp_path, "/", 2, frozenset())])
    monkeypatch.setattr(containment, "_own_folder", lambda _mount: tmp_path / "user.slice" / "run.scope")
    groups = containment._make_groups("mlebench-x")
    group = tmp_path / "user.slice" / "run.scope" / "mlebench-x"
    assert groups == {"cpu": group, "memory": group, "pids": group}
    (group / "cgroup.controllers").write_text("cpu memory pids\n")
    (group / "memory.swap.max").write_text("max\n")
    containment._set_limits(groups, containment.ProcessLimits(1000, 50, 10, 1.5))
    written = {path.name: path.read_text() for path in group.iterdir() if path.name != "cgroup.controllers"}
    assert written == {
        "memory.max": "1000",
        "memory.swap.max": "0",
        "pids.max": "50",
        "cpu.max": "150000 100000",
    }


def test_a_process_knows_how_many_threads_it_has() -> None:
    own = [one for children in process_tree().values() for one in children if one.pid == os.getpid()]
    assert own[0].threads >= 1


def test_what_closes_itself_to_the_watcher_counts_with_all_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(path: Path) -> str:
        raise PermissionError(path)

    monkeypatch.setattr(Path, "read_text", refused)
    closed = [Process(os.getpid(), "closed", 1, 0.0, 200), Process(os.getpid(), "closed", 1, 0.0, 300)]
    assert containment._memory_of(closed, limit=100) == 500


@pytest.mark.parametrize(("script", "delegates"), [("exit 0", True), ("exit 1", False)])
def test_a_shim_runs_in_a_scope_of_systemd_where_that_rules_the_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, *, delegates: bool
) -> None:
    program = tmp_path / "systemd-run"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(containment, "_SYSTEMD", tmp_path)
    monkeypatch.setattr(containment, "_mounts", lambda: [containment._Mount(tmp_path, "/", 2, frozenset())])
    containment._scope.cache_clear()
    try:
        command = in_scope(["shim", "folder"])
    finally:
        containment._scope.cache_clear()
    assert command[-2:] == ["shim", "folder"]
    assert ("--property=Delegate=yes" in command) is delegates
    assert (command[0] == str(program)) is delegates
