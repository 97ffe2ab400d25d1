"""Compare the times of commands, interleaved, so that noise of the machine affects both."""

from __future__ import annotations

import fcntl
import os
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass

_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Command:
    """Something to start and wait for, by name.

    Attributes:
        marker: what it draws on a terminal when it is there; None: wait until it ends.
    """

    name: str
    arguments: Sequence[str]
    marker: bytes | None = None


@dataclass(frozen=True)
class Comparison:
    """The time of something compared with a reference.

    Attributes:
        promise: the ratio that is promised; None where there is no promise.
    """

    name: str
    subject: str
    subject_seconds: float
    reference: str
    reference_seconds: float
    promise: float | None

    @property
    def ratio(self) -> float:
        """The time as a multiple of the reference."""
        return self.subject_seconds / self.reference_seconds

    @property
    def is_kept(self) -> bool:
        """Whether the promise is kept."""
        return self.promise is None or self.ratio <= self.promise

    def row(self) -> str:
        """Return the comparison as a line of the table."""
        promised = "-" if self.promise is None else f"<= {self.promise:.3g}"
        return (
            f"{self.name:10} {self.subject:46} {self.subject_seconds:6.3f}   {self.reference:46}"
            f" {self.reference_seconds:6.3f}   {self.ratio:5.2f}  {promised}"
        )


@dataclass(frozen=True)
class Reading:
    """A measured amount, where the promise is an absolute number.

    Attributes:
        limit: the most that is promised; None where there is no promise.
    """

    name: str
    subject: str
    value: float
    unit: str
    limit: float | None

    @property
    def is_kept(self) -> bool:
        """Whether the promise is kept."""
        return self.limit is None or self.value <= self.limit

    def row(self) -> str:
        """Return the reading as a line of the table."""
        promised = "-" if self.limit is None else f"<= {self.limit:,.4g}"
        return f"{self.name:10} {self.subject:102} {self.value:>7,.1f} {self.unit:4}  {promised}"


def python(name: str, *arguments: str) -> Command:
    """Return a command that this Python runs."""
    return Command(name, (sys.executable, *arguments))


def until_drawn(name: str, marker: bytes, *arguments: str) -> Command:
    """Return a command run by this very Python, which is there when it has drawn `marker`."""
    return Command(name, (sys.executable, *arguments), marker)


def compare(
    name: str, subject: Command, reference: Command, *, promise: float | None, rounds: int
) -> Comparison:
    """Time two commands in turn, the first round only to fill caches, and return the medians."""
    taken: dict[str, list[float]] = {subject.name: [], reference.name: []}
    for number in range(rounds + 1):
        for command in (subject, reference):
            seconds = _time(command)
            if number:
                taken[command.name].append(seconds)
    return Comparison(
        name,
        subject.name,
        statistics.median(taken[subject.name]),
        reference.name,
        statistics.median(taken[reference.name]),
        promise,
    )


def _time(command: Command) -> float:
    before = time.perf_counter()
    if command.marker is None:
        ended = subprocess.run(
            command.arguments, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        taken = time.perf_counter() - before
        if ended.returncode:
            raise RuntimeError(f"{command.name}: exit code {ended.returncode}\n{ended.stderr}")
        return taken
    return _watch(command.arguments, command.marker) - before


def _watch(arguments: Sequence[str], marker: bytes) -> float:
    """Run a full-screen program in its own terminal and return when it has drawn the marker."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    drawn = b""
    try:
        while marker not in drawn:
            readable, _, _ = select.select([ours], [], [], _PATIENCE_SECONDS)
            if not readable:
                raise TimeoutError(f"{marker!r} was not drawn within {_PATIENCE_SECONDS} s: {drawn[-500:]!r}")
            drawn += os.read(ours, 1 << 16)
        return time.perf_counter()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
