"""Find processes that tests left behind, by the temporary directory in their command line."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Leftover:
    pid: int
    command: str


def processes_naming(directory: Path) -> list[Leftover]:
    """Return every living process but this one whose command line names something below a directory."""
    wanted = os.fsencode(directory) + b"/"
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if wanted in command:
            found.append(
                Leftover(int(entry.name), command.replace(b"\0", b" ").decode(errors="replace").strip())
            )
    return found


def wait_for_none(directory: Path, *, patience: float) -> list[Leftover]:
    """Give such processes time to end, then kill the rest and return them."""
    give_up = time.monotonic() + patience
    while (left := processes_naming(directory)) and time.monotonic() < give_up:
        time.sleep(0.1)
    for process in left:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return left
