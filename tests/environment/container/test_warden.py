"""The warden ends what it started, on time and to the last process, and keeps its output within bounds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.console.logs.reader import LogFile
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.run_log import CUT_MARK, log_parts
from tests.environment.container import warden_program

PATIENCE = 60.0

DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[1], "w").write(str(os.getpid()))
        while True: time.sleep(60)
    os._exit(0)
os.wait()
"""


@dataclass(frozen=True)
class Watched:
    """A warden and the places of its files."""

    process: subprocess.Popen[bytes]
    folder: Path

    def ending(self) -> Ending:
        return Ending(**json.loads((self.folder / "ending.json").read_text()))

    def output(self) -> bytes:
        return (self.folder / "run.log").read_bytes()


def program(
    folder: Path,
    *command: str,
    deadline: float = 600,
    grace: float = 600,
    spare: Sequence[str] = (),
    missing: str | None = None,
    log_limit: int = 1 << 30,
) -> list[str]:
    options = {"folder": str(folder), "command": command, "deadline": deadline, "grace": grace}
    more = {"spare": spare, "missing": missing, "log_limit": log_limit}
    return [sys.executable, warden_program.__file__, json.dumps(options | more)]


@contextmanager
def watching(folder: Path, *command: str, **options: Any) -> Iterator[Watched]:
    with subprocess.Popen(program(folder, *command, **options)) as process:
        try:
            yield Watched(process, folder)
        finally:
            process.kill()


def run(folder: Path, *command: str, **options: Any) -> Watched:
    with watching(folder, *command, **options) as watched:
        assert watched.process.wait(PATIENCE) == 0
        return watched


def wait_for(path: Path) -> str:
    """Wait until a file has content, and give it."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if path.exists() and (text := path.read_text()):
            return text
        pause.wait(0.02)
    raise AssertionError(f"{path} did not appear")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def wait_until_dead(pid: int) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if not is_alive(pid):
            return
        pause.wait(0.02)
    raise AssertionError(f"process {pid} is alive")


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_commands_exit_code_and_output_are_kept(tmp_path: Path, code: int) -> None:
    watched = run(tmp_path, "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert watched.output() == b"out\nerr\n"
    ending = watched.ending()
    assert (ending.reason, ending.exit_code, ending.signal) == ("exited", code, None)


def test_a_command_ended_by_a_signal_is_told_as_such(tmp_path: Path) -> None:
    ending = run(tmp_path, "sh", "-c", "kill -KILL $$").ending()
    assert (ending.reason, ending.exit_code, ending.signal) == ("exited", None, signal.SIGKILL)


@pytest.mark.parametrize("command", ["/no/such/program", "/etc/passwd"])
def test_a_command_that_cannot_start_is_an_error_of_starting(tmp_path: Path, command: str) -> None:
    ending = run(tmp_path, command).ending()
    assert ending.reason == "unstarted"
    assert command in ending.problem


def test_what_fails_before_the_command_begins_is_told(tmp_path: Path) -> None:
    ending = run(tmp_path, "true", missing="/no/such/group/cgroup.procs").ending()
    assert ending.reason == "unstarted"
    assert "can't be prepared: FileNotFoundError" in ending.problem
    assert "/no/such/group/cgroup.procs" in ending.problem


def test_at_the_deadline_everything_is_asked_to_end_and_may_still_save(tmp_path: Path) -> None:
    saving = "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    watched = run(tmp_path, "bash", "-c", saving, deadline=0.7)
    ending = watched.ending()
    assert (ending.reason, ending.exit_code) == ("deadline", 7)
    assert watched.output().endswith(b"saved\n")


def test_after_the_grace_even_daemons_that_ignore_the_request_are_killed(tmp_path: Path) -> None:
    stubborn = f'trap \'\' TERM; {sys.executable} -c "$1" "$2"; while :; do sleep 60; done'
    command = ("bash", "-c", stubborn, "bash", DAEMON, str(tmp_path / "daemon"))
    with watching(tmp_path, *command, grace=0.2) as watched:
        daemon = int(wait_for(tmp_path / "daemon"))
        watched.process.terminate()
        watched.process.wait(PATIENCE)
    assert not is_alive(daemon)
    ending = watched.ending()
    assert (ending.reason, ending.signal, ending.survivors) == ("stopped", signal.SIGKILL, 0)


def test_what_a_finished_command_leaves_running_is_killed(tmp_path: Path) -> None:
    run(
        tmp_path,
        sys.executable,
        "-c",
        DAEMON + "\nimport pathlib\n"
        "while not (pathlib.Path(sys.argv[1]).exists() and pathlib.Path(sys.argv[1]).read_text()): time.sleep(0.01)",
        str(tmp_path / "daemon"),
    )
    assert not is_alive(int((tmp_path / "daemon").read_text()))


HEADLESS = """
import ctypes, os, platform, sys, threading, time
def live_on():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.01)
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(600)
threading.Thread(target=live_on).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_a_process_that_plays_dead_is_killed(tmp_path: Path) -> None:
    script = f'{sys.executable} -c "$1" "$2" & while [ ! -s "$2" ]; do sleep 0.02; done'
    watched = run(tmp_path, "bash", "-c", script, "bash", HEADLESS, str(tmp_path / "pid"))
    assert watched.ending().survivors == 0
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


def test_a_second_stop_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    stubborn = "trap 'echo heard' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    with watching(tmp_path, "bash", "-c", f"cd {tmp_path}; {stubborn}") as watched:
        wait_for(tmp_path / "pid")
        watched.process.terminate()
        wait_for(tmp_path / "run.log")
        watched.process.terminate()
        watched.process.wait(PATIENCE)
    assert watched.ending().reason == "stopped"


def test_a_spared_program_gets_no_request_but_is_killed_in_the_end(tmp_path: Path) -> None:
    inner = "trap 'echo inner asked; exit' TERM; echo $$ > inner; while :; do sleep 0.05; done"
    wrapper = tmp_path / "wrapper"
    wrapper.symlink_to("/bin/bash")
    outer = f"trap 'echo outer asked' TERM; cd {tmp_path}; bash -c \"$1\"; echo outer goes on"
    with watching(tmp_path, str(wrapper), "-c", outer, "x", inner, spare=["wrapper"]) as watched:
        wait_for(tmp_path / "inner")
        watched.process.terminate()
        watched.process.wait(PATIENCE)
    said = watched.output().splitlines()
    assert b"inner asked" in said and b"outer goes on" in said
    assert b"outer asked" not in said


def test_a_killed_warden_takes_its_command_along(tmp_path: Path) -> None:
    with watching(tmp_path, "bash", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 600") as watched:
        child = int(wait_for(tmp_path / "pid"))
        watched.process.kill()
        watched.process.wait(PATIENCE)
    wait_until_dead(child)
    assert not (tmp_path / "ending.json").exists()


def test_the_command_starts_with_default_signals_and_its_own_session(tmp_path: Path) -> None:
    tell = "import os, signal; print(os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
    watched = run(tmp_path, sys.executable, "-c", tell)
    assert watched.output() == b"True True\n"


def test_bytes_of_any_kind_are_kept_as_they_are(tmp_path: Path) -> None:
    data = bytes(range(256)) * 300 + "größe€𝄞".encode() * 5000 + b"\xe2\x82"
    (tmp_path / "data").write_bytes(data)
    watched = run(tmp_path, "cat", str(tmp_path / "data"))
    assert watched.output() == data


def test_beyond_the_limit_head_and_end_are_kept_and_the_cut_is_told(tmp_path: Path) -> None:
    data = b"".join(b"line %06d\n" % number for number in range(20_000))
    (tmp_path / "data").write_bytes(data)
    watched = run(tmp_path, "cat", str(tmp_path / "data"), log_limit=40_000)
    head, *segments = log_parts(tmp_path / "run.log")
    assert watched.output() == data[:20_000] + CUT_MARK
    assert (head.start, head.length) == (0, 20_000)
    assert [part.path.read_bytes() for part in segments] == [
        data[part.start : part.start + part.length] for part in segments
    ]
    assert segments[-1].start + segments[-1].length == len(data)
    assert 10_000 < sum(part.length for part in segments) <= 20_000
    assert segments[0].start > head.length


def test_output_within_the_limit_has_no_cut(tmp_path: Path) -> None:
    run(tmp_path, "sh", "-c", "printf 1234567890", log_limit=20)
    assert [(part.start, part.length) for part in log_parts(tmp_path / "run.log")] == [(0, 10)]


def test_the_time_index_leads_from_a_moment_to_a_byte(tmp_path: Path) -> None:
    watched = run(tmp_path, "sh", "-c", "echo first; sleep 1.1; echo second")
    log = LogFile(tmp_path / "run.log")
    log.refresh()
    first, second = log.moments_of([0, 6])
    started = watched.ending().started_at
    assert started is not None
    assert first is not None and second is not None and second > first + 1
    assert log.position_at(started - 10) == 0
    assert log.position_at(second - 0.5) == 0
    assert log.position_at(second + 10) == 6
    log.close()


def test_a_log_that_cannot_be_written_does_not_stop_the_command(tmp_path: Path) -> None:
    (tmp_path / "run.log").symlink_to("/dev/full")
    watched = run(tmp_path, "sh", "-c", "echo lost; echo also; exit 4")
    assert "No space left" in watched.ending().log_error


def test_as_process_1_it_reaps_and_keeps_the_exit_code(tmp_path: Path, bubblewrap: str) -> None:
    inside = ["--unshare-pid", "--as-pid-1", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    writable = ["--bind", str(tmp_path), str(tmp_path)]
    subprocess.run(
        [bubblewrap, *inside, *writable, *program(tmp_path, "sh", "-c", "(sleep 60 &) ; exit 9")],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=PATIENCE,
        check=True,
    )
    assert Ending(**json.loads((tmp_path / "ending.json").read_text())).exit_code == 9
