"""The main process of a sandbox: starts one command, ends it at its deadline, and keeps what it prints.

Standard library only, because it is copied into container images, where `container.py` is process 1 and
uses it; in the process runtime it is the agent's parent. It decides nothing about a run.

    python warden.py --deadline SECONDS --grace SECONDS [--log FILE --log-limit BYTES]
                     [--result FILE] [--lock FILE] [--spare NAME] -- COMMAND...

- `--log FILE`: what the command prints, as bytes; how it is capped is told in `capped_log.py`.
- `--result FILE`: the `Ending` as JSON, put there in one step when nothing of the command is left.
- `--lock FILE`: held by flock while the warden lives, with its process id as content. One that is not
  held any more without a result beside it means that the warden itself was killed.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from environment.container.run_log import CappedLog

EXIT_DEADLINE = 124
EXIT_LOCKED = 75
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CHUNK = 1 << 16
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: the child only calls it
_KILL_PATIENCE = 20.0
_DRAIN_PATIENCE = 5.0

Reason = Literal["exited", "deadline", "stopped"]


@dataclass(frozen=True)
class Ending:
    """How a command ended.

    Attributes:
        reason: it went by itself, at its deadline, or because the warden was told to stop.
        exit_code: of the command; None when a signal ended it.
        signal: that ended the command; None when it exited.
        started_at, ended_at: wall clock, seconds since the epoch.
        run_seconds: by the monotonic clock.
        output_bytes: printed by the command, kept or not (0 when the output is not ours to keep).
        survivors: processes that could not be killed (other user, stuck in the kernel).
        log_error: why the log is not complete; empty when it is.
    """

    reason: Reason
    exit_code: int | None
    signal: int | None
    started_at: float
    ended_at: float
    run_seconds: float
    output_bytes: int = 0
    survivors: int = 0
    log_error: str = ""

    def shell_code(self) -> int:
        """The exit code by which a shell or Docker would tell this ending."""
        if self.reason == "deadline":
            return EXIT_DEADLINE
        if self.reason == "stopped":
            return 128 + signal.SIGTERM
        return 128 + self.signal if self.signal is not None else (self.exit_code or 0)


class Warden:
    """Watches over one command; one a process, in its main thread: it owns the signals and the children."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        deadline: float,
        grace: float,
        log: CappedLog | None = None,
        spare: str = "",
        prepare: Callable[[], None] | None = None,
    ) -> None:
        """Prepare.

        Args:
            command: program and arguments.
            deadline: seconds from the start after which everything is asked to end.
            grace: seconds between SIGTERM and SIGKILL.
            log: takes what the command prints; without it the command prints where the warden does.
            spare: a process name that gets no SIGTERM, only SIGKILL: a sandbox program that would
                take everything inside down with it before the grace is over.
            prepare: what the command's process does before it becomes the command.
        """
        self._command = list(command)
        self._deadline = deadline
        self._grace = grace
        self._log = log
        self._spare = spare
        self._prepare = prepare
        self._stops = 0
        self._status: int | None = None
        self._child = 0
        self._output = self._wake = -1
        self._started_at = self._started = 0.0

    def start(self) -> None:
        """Start the command.

        Raises:
            OSError: it cannot be started.
        """
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._started_at, self._started = time.time(), time.monotonic()
        parent = os.getpid()

        def begin() -> None:
            if self._prepare is not None:
                self._prepare()
            # After that, because whoever changes its user loses this.
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # the warden died before the line above could take effect
                os._exit(EXIT_NOT_EXECUTABLE)

        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if self._log else None,
            stderr=subprocess.STDOUT if self._log else None,
            start_new_session=True,
            preexec_fn=begin,
        )
        self._child = process.pid
        if process.stdout is not None:
            self._output = os.dup(process.stdout.fileno())
            os.set_blocking(self._output, False)
            process.stdout.close()
        process.returncode = 0  # all children are reaped in one place: Popen must not wait for this one

    def watch(self) -> Ending:
        """Wait for the end of the command, or make it, and leave none of its processes behind."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            if self._output >= 0:
                selector.register(self._output, selectors.EVENT_READ)
            reason = self._until_the_end(selector)
            survivors = self._kill_all(selector)
            ended_at, run_seconds = time.time(), time.monotonic() - self._started
            self._drain(selector)
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        return Ending(
            reason,
            code if code is not None and code >= 0 else None,
            -code if code is not None and code < 0 else None,
            self._started_at,
            ended_at,
            run_seconds,
            output_bytes=self._log.offset if self._log else 0,
            survivors=survivors,
            log_error=self._log.error if self._log else "",
        )

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1

    def _until_the_end(self, selector: selectors.BaseSelector) -> Reason:
        reason: Reason | None = None
        next_moment = self._started + self._deadline
        while True:
            self._reap()
            now = time.monotonic()
            if reason is None:
                if self._status is not None:
                    return "exited"
                if self._stops or now >= next_moment:
                    reason = "stopped" if self._stops else "deadline"
                    next_moment = now + self._grace
                    _send(signal.SIGTERM, _descendants(), spare=self._spare)
            elif now >= next_moment or self._stops > 1 or not _descendants():
                return reason
            self._wait(selector, max(0.0, next_moment - now))

    def _wait(self, selector: selectors.BaseSelector, seconds: float) -> None:
        for key, _ in selector.select(seconds):
            if key.fd == self._output:
                self._read_output(selector)
            else:
                os.read(key.fd, _CHUNK)

    def _read_output(self, selector: selectors.BaseSelector) -> None:
        data = os.read(self._output, _CHUNK)
        if data and self._log:
            self._log.write(data)
        elif not data:
            selector.unregister(self._output)
            os.close(self._output)
            self._output = -1

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._child:
                self._status = status

    def _kill_all(self, selector: selectors.BaseSelector) -> int:
        """Kill until nothing is left: what forks while being killed is found in the next round."""
        give_up = time.monotonic() + _KILL_PATIENCE
        while True:
            self._reap()
            alive = _descendants()
            if not alive or time.monotonic() > give_up:
                self._reap()  # what died since the last look: the command itself may be among it
                return len(alive)
            _send(signal.SIGKILL, alive)
            self._wait(selector, 0.05)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Take what still lies in the pipe; a survivor that holds it open does not hold us."""
        give_up = time.monotonic() + _DRAIN_PATIENCE
        while self._output >= 0 and time.monotonic() < give_up:
            self._wait(selector, 0.2)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl was refused")


def _descendants() -> dict[int, str]:
    """All living processes below this one, as process id and name; orphans are ours as subreaper."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with suppress(FileNotFoundError, ProcessLookupError):  # it ends: what we wait for, no error
            # The name stands in parentheses and may hold anything, so it is cut at the last one.
            before, _, after = Path(entry.path, "stat").read_bytes().rpartition(b")")
            fields = after.split()
            # A process whose first thread has ended looks like a zombie while its other threads run on.
            if fields[0] not in (b"Z", b"X") or int(fields[17]) > 1:
                name = before.partition(b"(")[2].decode("utf-8", "replace")
                children.setdefault(int(fields[1]), []).append((int(entry.name), name))
    found, todo = dict[int, str](), [os.getpid()]
    while todo:
        for pid, name in children.get(todo.pop(), ()):
            found[pid] = name
            todo.append(pid)
    return found


def _send(number: signal.Signals, processes: dict[int, str], *, spare: str = "") -> None:
    for pid in (pid for pid, name in processes.items() if not spare or name != spare):
        # Gone already, or another user's: what is left at the end is counted as survivors.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _hold_lock(path: Path) -> bool:
    """Hold the lock for as long as this process lives; the descriptor is left open on purpose."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # the descriptor goes with this process, which has nothing left to do
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    return True


def put_json(path: Path, content: dict[str, Any]) -> None:
    """Put a file in its place in one step."""
    temporary = path.with_name(f".{path.name}.partial")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(content, stream)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="warden", description="Run a command until its deadline.")
    parser.add_argument("--deadline", type=float, required=True, help="seconds until SIGTERM to everything")
    parser.add_argument("--grace", type=float, default=30.0, help="seconds from SIGTERM to SIGKILL")
    parser.add_argument("--log", type=Path, help="file for the command's output")
    parser.add_argument("--log-limit", type=int, default=1 << 30, help="bytes of output to keep")
    parser.add_argument("--result", type=Path, help="file for the ending, as JSON")
    parser.add_argument("--lock", type=Path, help="file locked while the warden lives")
    parser.add_argument("--spare", default="", help="process name that gets no SIGTERM")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Watch over the command of the command line and tell its ending as exit code."""
    asked = _parse(argv)
    if asked.lock and not _hold_lock(asked.lock):
        sys.stderr.write(f"warden: {asked.lock} is held: another warden runs this command already\n")
        return EXIT_LOCKED
    log = CappedLog(asked.log, asked.log_limit) if asked.log else None
    warden = Warden(asked.command, deadline=asked.deadline, grace=asked.grace, log=log, spare=asked.spare)
    try:
        warden.start()
    except OSError as error:
        code = EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_NOT_EXECUTABLE
        sys.stderr.write(f"warden: {asked.command[0]} cannot be started: {error.strerror}\n")
        now = time.time()
        ending = Ending("exited", code, None, now, now, 0.0)
    else:
        ending = warden.watch()
    if log:
        log.close()
    if asked.result:
        put_json(asked.result, asdict(ending))
    return ending.shell_code()


if __name__ == "__main__":
    sys.exit(main())
