"""Supervision of one command: start it, end it at its deadline with all its descendants, and keep its output.

In a container the main process does this, in the process runtime the shim's second child. Standard library
only, because it is copied into container images. It knows nothing about runs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Protocol

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.processes import Process, process_tree, send
from mlebench_console.environment.container.run_log import CappedLog

_PR_SET_PDEATHSIG = 1
_MOST_CAUSE_BYTES = 1000
_PR_SET_CHILD_SUBREAPER = 36
_CHUNK = 1 << 16
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: the child only calls it
_KILL_PATIENCE = 20.0
_DRAIN_PATIENCE = 5.0


class TreeLimits(Protocol):
    """Limits of a command with all its descendants, enforced from outside."""

    poll_seconds: float | None
    """How often to call `excess`; None where the kernel enforces all limits."""

    def enter(self) -> None:
        """Put the calling process under the limits, with all that it will start."""

    def excess(self, processes: Sequence[Process]) -> tuple[str, str] | None:
        """Return the reason for their end, and limit and amount in words, if these processes exceed one."""

    def forbid_forks(self) -> None:
        """Keep them from starting further processes, where possible."""

    def oom_counters(self) -> Sequence[Path]:
        """Return the kernel's counters of processes killed for memory."""


class Warden:
    """Supervises one command; only one per process, in its main thread, as it owns the signals and the children."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        deadline: float,
        grace: float,
        log: CappedLog,
        oom_counters: Sequence[Path] = (),
        spare: Collection[str] = (),
        prepare: Callable[[], object] | None = None,
        limits: TreeLimits | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Configure the supervision; `start` starts the command.

        Args:
            command: program and arguments.
            deadline: seconds from the start after which everything gets SIGTERM.
            grace: seconds between SIGTERM and SIGKILL.
            log: receives what the command prints, and is closed in the end.
            oom_counters: the kernel's counters of processes killed for memory.
            spare: names of processes that get no SIGTERM, only SIGKILL: programs of a sandbox whose end would
                kill everything inside before the grace is over.
            prepare: called in the command's process before it becomes the command.
            limits: of the command with all its descendants.
            descriptors: open files to pass to the command.
        """
        self._command = list(command)
        self._deadline = deadline
        self._grace = grace
        self._log = log
        self._oom_counters = oom_counters if limits is None else limits.oom_counters()
        self._oom_kills = output.oom_kills(self._oom_counters)
        self._spare = spare
        self._prepare = prepare
        self._limits = limits
        self._descriptors = descriptors
        self._problem = ""
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
        adopt_orphans()
        self._wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._started_at, self._started = time.time(), time.monotonic()
        parent = os.getpid()
        # subprocess does not report what failed between fork and exec.
        cause, cause_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

        def begin() -> None:
            try:
                if self._limits is not None:
                    self._limits.enter()
                if self._prepare is not None:
                    self._prepare()
                die_with(parent)  # last, because changing the user resets it
            except Exception as error:
                os.write(cause_write, f"{type(error).__name__}: {error}".encode()[:_MOST_CAUSE_BYTES])
                raise

        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=begin,
                pass_fds=self._descriptors,
            )
        except subprocess.SubprocessError as error:
            reason = os.read(cause, _MOST_CAUSE_BYTES).decode(errors="replace")
            raise OSError(errno.EPERM, f"its process can't be prepared: {reason}") from error
        finally:
            os.close(cause)
            os.close(cause_write)
        self._child = process.pid
        assert process.stdout is not None
        self._output = os.dup(process.stdout.fileno())
        os.set_blocking(self._output, False)
        process.stdout.close()
        process.returncode = 0  # all children are reaped in one place: Popen must not wait for this one

    def watch(self) -> Ending:
        """Wait until the command ends, or end it, and kill all processes that it leaves."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            selector.register(self._output, selectors.EVENT_READ)
            reason = self._until_the_end(selector)
            survivors = self._kill_all(selector)
            ended_at = time.time()
            self._drain(selector)
        self._log.close()
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        return Ending(
            reason,
            code if code is not None and code >= 0 else None,
            -code if code is not None and code < 0 else None,
            self._started_at,
            ended_at,
            oom_kills=output.oom_kills(self._oom_counters) - self._oom_kills,
            survivors=survivors,
            log_error=self._log.error,
            problem=self._problem,
        )

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1

    def _until_the_end(self, selector: selectors.BaseSelector) -> str:
        reason = ""
        next_moment = self._started + self._deadline
        while True:
            self._reap()
            now = time.monotonic()
            if not reason:
                if self._status is not None:
                    return output.EXITED
                if self._stops or now >= next_moment:
                    reason = output.STOPPED if self._stops else output.DEADLINE
                    next_moment = now + self._grace
                    send(signal.SIGTERM, (one for one in _descendants() if one.name not in self._spare))
            elif now >= next_moment or self._stops > 1 or not _descendants():
                return reason
            seconds = next_moment - now
            if self._limits is not None and self._limits.poll_seconds is not None:
                excess = self._limits.excess(_descendants())
                if excess is not None:
                    because, self._problem = excess
                    return reason or because
                seconds = min(seconds, self._limits.poll_seconds)
            self._wait(selector, max(0.0, seconds))

    def _wait(self, selector: selectors.BaseSelector, seconds: float) -> None:
        for key, _ in selector.select(seconds):
            if key.fd == self._output:
                self._read_output(selector)
            else:
                os.read(key.fd, _CHUNK)

    def _read_output(self, selector: selectors.BaseSelector) -> None:
        data = os.read(self._output, _CHUNK)
        if data:
            self._log.write(data)
        else:
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
        """Kill until nothing is left; processes forked meanwhile are found in the next round."""
        give_up = time.monotonic() + _KILL_PATIENCE
        if self._limits is not None:
            self._limits.forbid_forks()
        while True:
            self._reap()
            alive = _descendants()
            if not alive or time.monotonic() > give_up:
                self._reap()  # the command itself may have died since the last call
                return len(alive)
            if os.getpid() == 1:
                # All processes of the container in one system call, which no fork escapes.
                with suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            else:
                send(signal.SIGKILL, alive)  # those left at the end are counted as survivors
            self._wait(selector, 0.05)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what is left in the pipe, for a limited time, since a survivor may keep it open."""
        give_up = time.monotonic() + _DRAIN_PATIENCE
        while self._output >= 0 and time.monotonic() < give_up:
            self._wait(selector, 0.2)


def adopt_orphans() -> None:
    """Become the parent of this process's descendants whose own parents end."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Have this process killed, or signalled, when its parent ends; exit at once if it has ended already."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl was refused")


def _descendants() -> list[Process]:
    """Return all living descendants of this process, including orphans, whose subreaper it is."""
    return process_tree().below(os.getpid())
