"""What background processes have in common: a start that they outlive, a log, and signals that ask them to end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from mlebench_console.foundation.clock import iso

_MOST_SIGNALS = 1024

# Writes an event to the log, with its exception if there was one.
Log = Callable[[str, BaseException | None], None]


def open_log(path: Path, *, anew: bool = False) -> IO[bytes]:
    """Open a log for appending, or truncate it if `anew`; only its owner can read it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if anew else 0)
    stream = os.fdopen(os.open(path, flags, 0o600), "ab")
    with suppress(PermissionError):  # it belongs to another user, who decides
        os.fchmod(stream.fileno(), 0o600)
    return stream


def start_daemon(
    command: Sequence[str],
    log: Path,
    *,
    variables: Mapping[str, str] | None = None,
    prepare: Callable[[], object] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that it outlives this one, and let its output go to a log.

    Args:
        command: program and arguments.
        log: the file.
        variables: its only ones; by default those of this process.
        prepare: called in the new process before it becomes the program.
    """
    with open_log(log) as stream:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd="/",
            env=variables,
            start_new_session=True,
            preexec_fn=prepare,
        )


def write_log(text: str) -> None:
    """Write text with the time before it; a log that can't be written must not end the work."""
    with suppress(OSError):
        sys.stderr.write(f"{iso(time.time())} {text.rstrip()}\n")
        sys.stderr.flush()


class EndSignal:
    """Records the first of some signals, each of which asks this process to end."""

    def __init__(self, *numbers: signal.Signals) -> None:
        """Handle these signals from now on; only the main thread can."""
        self.at: float | None = None
        # By a pipe, as a handler may run at any moment, even while a lock is held that it would need.
        self._woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda _number, _frame: self._note())

    def _note(self) -> None:
        self.at = self.at or time.time()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a signal has come."""
        return self._woken

    def wait(self, seconds: float) -> None:
        """Wait so long, or until any signal comes that this process handles."""
        select.select([self._woken], [], [], seconds)
        with suppress(BlockingIOError):
            while os.read(self._woken, _MOST_SIGNALS):
                pass
