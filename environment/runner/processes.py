"""One look at all processes of the host: who descends from whom and what each uses; nothing of runs."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """A living process as /proc/PID/stat tells it."""

    pid: int
    parent: int
    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Tree:
    """All living processes of the host at one moment."""

    children: dict[int, tuple[Process, ...]]

    def below(self, root: int) -> list[Process]:
        """Every process that descends from `root`, which is not among them."""
        found: list[Process] = []
        todo = [root]
        while todo:
            children = self.children.get(todo.pop(), ())
            found.extend(children)
            todo.extend(child.pid for child in children)
        return found


def look() -> Tree:
    """Read all of /proc once."""
    children: dict[int, list[Process]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            # A process that ends while we look is no longer of interest.
            with suppress(FileNotFoundError, ProcessLookupError):
                process = _read(entry.path)
                if process is not None:
                    children.setdefault(process.parent, []).append(process)
    return Tree({parent: tuple(found) for parent, found in children.items()})


def _read(folder: str) -> Process | None:
    with open(f"{folder}/stat", "rb") as stream:  # noqa: PTH123 - some thousand times a look
        # The name stands in parentheses and may hold anything, so it is cut at the last one.
        parts = stream.read().rpartition(b")")[2].split()
    if parts[0] in (b"Z", b"X"):
        return None
    cpu = (int(parts[11]) + int(parts[12])) / _TICKS
    return Process(int(folder[6:]), int(parts[1]), cpu, int(parts[21]) * _PAGE)


def of_attempt(attempt: Path) -> list[int]:
    """The processes that belong to an attempt by their own marks, whoever their parent is by now.

    A plain agent's variables name its LOGS_DIR, and a bubblewrap's arguments name the attempt's directory.
    """
    logs = b"LOGS_DIR=" + os.fsencode(attempt / "logs")
    binding = os.fsencode(attempt / "logs")
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            folder = Path(entry.path)
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
            inside = logs in (folder / "environ").read_bytes().split(b"\0")
            if inside or (Path(os.fsdecode(arguments[0])).name == "bwrap" and binding in arguments):
                found.append(int(entry.name))
    return found


def kill(pids: list[int]) -> None:
    """End processes at once; one that is gone already is fine."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def boot_id() -> str:
    """Which boot of the host this is: monotonic clocks compare within one only."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
