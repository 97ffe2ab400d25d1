"""One look at all processes of the host: who descends from whom and what each uses; nothing of runs."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from environment.runner.gpus import Gpu, GpuReader
from foundation.hardware import Hardware

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


def process_tree() -> Tree:
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


def disk_usage(folder: Path) -> int:
    """Bytes on disk below a folder, no links followed."""
    total = 0
    todo = [str(folder)]
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError:
            continue  # it went away or was closed to us while we walked: it counts as nothing
        for entry in entries:
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
    return total


_LOOPBACK = "lo"
# Of an interface's numbers, those of bytes received and sent.
_RECEIVED, _SENT = 0, 8


def network_bytes(process: int, proc: Path = Path("/proc")) -> int | None:
    """Bytes in and out since the network was made; None where it is the host's own, or can't be seen."""
    try:
        if (proc / str(process) / "ns/net").readlink() == (proc / "self/ns/net").readlink():
            return None
        table = (proc / str(process) / "net/dev").read_text()
    except OSError:
        # It has just ended, or belongs to somebody else.
        return None
    return sum(_of_line(line) for line in table.splitlines() if ":" in line)


def _of_line(line: str) -> int:
    name, _, rest = line.partition(":")
    numbers = rest.split()
    if name.strip() == _LOOPBACK:
        return 0
    return int(numbers[_RECEIVED]) + int(numbers[_SENT])


_CPUS = Path("/proc/cpuinfo")
_MEMORY = Path("/proc/meminfo")
_GIB = 1 << 30


def hardware_of(gpu_uuids: tuple[str, ...], reader: GpuReader) -> Hardware:
    """Tell the host's processors and memory, and the devices of these names; no driver is asked for none."""
    known = {gpu.uuid: gpu for gpu in reader.read()} if gpu_uuids else {}
    memory = _value(_MEMORY, "MemTotal")
    return Hardware(
        cpu_model=" ".join(_value(_CPUS, "model name").split()),  # not every architecture tells one
        cpus=os.cpu_count(),
        memory_bytes=int(memory.split()[0]) * 1024 if memory else None,
        gpus=tuple(_in_words(known[uuid]) for uuid in gpu_uuids if uuid in known),
    )


def _in_words(gpu: Gpu) -> str:
    return gpu.name if gpu.memory_total is None else f"{gpu.name}, {gpu.memory_total / _GIB:.0f} GiB"


def _value(path: Path, wanted: str) -> str:
    for line in path.read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == wanted:
            return value.strip()
    return ""
