"""The limits of one attempt's whole process tree: memory, processes, shared memory, processors.

The kernel's control groups enforce them where this user may create some: of version 2, its own or one that systemd
delegates to it, or of version 1. Elsewhere a watcher adds up the tree's usage several times a second, and has
it killed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from mlebench_console.environment.container.processes import Process, threads_with_own_files
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.process import bubblewrap
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.text import names_of_limits

POLL_SECONDS = 0.25
WATCHER = "a watcher"
_PREFIX = "mlebench-"
_SUPERVISOR = "supervisor"
_SHARE_OF_HOST = 0.9
_PERIOD_MICROSECONDS = 100_000
_LEAST_QUOTA_MICROSECONDS = 1_000
_OOM_SCORE = 500  # so that the kernel kills an agent first when the host runs out of memory
_SHM = Path("/dev/shm")  # noqa: S108 - every sandbox has its own
_SYSTEMD = Path("/run/systemd/system")
_PROBE_SECONDS = 20.0
_REMOVE_TRIES = 50
_REMOVE_WAIT_SECONDS = 0.02
# Since this kernel RLIMIT_NPROC counts within a user namespace, and so within one sandbox.
_COUNTS_PER_NAMESPACE = (5, 14)

_MEMORY, _PIDS, _CPU = "memory", "pids", "cpu"
_MOST_PIDS = "pids.max"
_V1, _V2 = 1, 2
_CONTROLLERS = (_MEMORY, _PIDS, _CPU)


@dataclass(frozen=True)
class ProcessLimits:
    """The limits of all processes of one attempt together; shared memory counts as memory, too."""

    memory_bytes: int
    processes: int
    shm_bytes: int
    cpus: float

    @classmethod
    def of(cls, order: Order) -> ProcessLimits:
        """Return the limits of an order; that of memory defaults to nine tenths of the host's."""
        memory = order.conditions.resources.memory_bytes or round(_host_memory() * _SHARE_OF_HOST)
        return cls(
            memory,
            protocol.MOST_PROCESSES,
            order.conditions.resources.shm_bytes or memory // 2,
            order.conditions.resources.cpus,
        )


@dataclass(frozen=True)
class EnforcedLimits:
    """What enforces each limit of an attempt on this host; empty where nothing does.

    Attributes:
        memory, processes, shared_memory, processors: of the whole process tree.
        user_namespaces: that an agent makes no user namespaces of its own, in which it could do as root does.
        system_calls: that an agent is refused the calls that ordinary programs never need.
    """

    memory: str
    processes: str
    shared_memory: str
    processors: str
    user_namespaces: str
    system_calls: str

    @property
    def is_watched(self) -> bool:
        """Whether a limit is only watched, so that it can be exceeded for a moment."""
        return WATCHER in asdict(self).values()

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The codes of the limits that nothing enforces, which are the names of these fields."""
        return tuple(code for code, by in asdict(self).items() if not by)

    def in_words(self) -> str:
        """Return what enforces which limits, and which are not enforced, in words."""
        codes_by: dict[str, list[str]] = {}
        for code, by in asdict(self).items():
            codes_by.setdefault(by, []).append(code)
        missing = codes_by.pop("", [])
        parts = [f"{names_of_limits(codes)} by {by}" for by, codes in codes_by.items()]
        return "; ".join([*parts, *([f"not enforced: {names_of_limits(missing)}"] if missing else [])])


@cache
def limits_here(*, isolated: bool) -> EnforcedLimits:
    """Test on this host what enforces the limits of an attempt, in bubblewrap or without it."""
    scope = _scope()
    if not scope:
        return _enforced_here(isolated=isolated)
    command = [*scope, sys.executable, "-I", "-m", __spec__.name, *(["--isolated"] if isolated else [])]
    tried = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=True)
    return EnforcedLimits(**json.loads(tried.stdout))


def _enforced_here(*, isolated: bool) -> EnforcedLimits:
    limits = ProcessLimits(
        _host_memory(), protocol.MOST_PROCESSES, _host_memory(), float(os.cpu_count() or 1)
    )
    containment = Containment(f"probe-{os.getpid()}-{secrets.token_hex(4)}", limits, isolated=isolated)
    containment.remove()
    return containment.enforced


def in_scope(command: Sequence[str]) -> list[str]:
    """Return a command that creates containments, run in a group that systemd delegates to it where that is needed."""
    return [*_scope(), *command]


@cache
def _scope() -> tuple[str, ...]:
    """Return the prefix for such a command; empty where systemd does not manage groups of version 2, or refuses."""
    program = shutil.which("systemd-run")
    rules = _SYSTEMD.is_dir() and any(
        mount.version == _V2 and _MEMORY in (mount.folder / "cgroup.controllers").read_text().split()
        for mount in _mounts()
    )
    if program is None or not rules:
        return ()
    user = () if os.geteuid() == 0 else ("--user",)
    scope = (program, *user, "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--")
    try:
        tried = subprocess.run([*scope, "true"], capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ()
    return scope if tried.returncode == 0 else ()


class Containment:
    """Enforces the limits of one attempt: created by its shim, entered by the agent, removed at the end."""

    def __init__(self, name: str, limits: ProcessLimits, *, isolated: bool) -> None:
        """Create the control groups.

        Args:
            name: the unique name of the attempt.
            limits: the limits to enforce.
            isolated: whether the agent runs in bubblewrap.
        """
        self._limits = limits
        self._groups = _make_groups(_PREFIX + name)
        _set_limits(self._groups, limits)
        self._counts_per_namespace = isolated and os.geteuid() != 0 and _kernel() >= _COUNTS_PER_NAMESPACE
        self.enforced = self._enforcement(isolated=isolated)
        watches = {_MEMORY, _PIDS} - set(self._groups)
        self.poll_seconds = POLL_SECONDS if watches else None

    def enter(self) -> None:
        """Put the calling process under the limits, with all that it will start."""
        score = Path("/proc/self/oom_score_adj")
        score.write_text(str(max(_OOM_SCORE, int(score.read_text()))))
        for folder in set(self._groups.values()):
            (folder / "cgroup.procs").write_text("0")

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command inside the sandbox with a limit that works only there, where that is needed."""
        if _PIDS in self._groups or not self._counts_per_namespace:
            return list(command)
        return ["bash", "-c", 'ulimit -u "$0"; exec "$@"', str(self._limits.processes), *command]

    def excess(self, processes: Sequence[Process]) -> tuple[EndReason, str] | None:
        """Return the reason and the words if the tree exceeds a limit without kernel enforcement."""
        if _PIDS not in self._groups:
            count = sum(process.threads for process in processes)
            if count > self._limits.processes:
                text = (
                    f"it has {count:,} processes and threads, at most {self._limits.processes:,} are allowed"
                )
                return EndReason.PROCESSES, text
        if _MEMORY not in self._groups:
            used = _memory_of(processes, self._limits.memory_bytes)
            if used > self._limits.memory_bytes:
                text = f"it took {used:,} bytes of memory, at most {self._limits.memory_bytes:,} are allowed"
                return EndReason.MEMORY, text
        return None

    def forbid_forks(self) -> None:
        """Keep the tree from starting further processes, so that all of it can be killed."""
        if _PIDS in self._groups:
            (self._groups[_PIDS] / _MOST_PIDS).write_text("0")

    def oom_counters(self) -> tuple[Path, ...]:
        """Name where the kernel counts what it kills for memory: of this tree, of our own group, or of the host.

        With version 1 each group counts its own processes alone, and an agent's can be in the group of a batch system's
        job: where none could be made below that, or where an agent of root that nothing isolates has gone there.
        """
        own = self._groups.get(_MEMORY)
        if own is not None and _version(own) == _V2:
            return (own / "memory.events",)
        counters = [] if own is None else [own / "memory.oom_control"]
        for mount in _mounts():
            job = _own_folder(mount)
            if job != mount.folder and (mount.version == _V2 or _MEMORY in mount.controllers):
                counters += [job / "memory.events", job / "memory.oom_control"]
        return tuple(counters) or (Path("/proc/vmstat"),)

    def remove(self) -> bool:
        """Remove the groups, and return False if a process is still alive in one."""
        for _ in range(_REMOVE_TRIES):  # killed processes leave them with a delay
            for group in self._groups.values():
                with suppress(OSError):
                    group.rmdir()
            if not any(group.exists() for group in self._groups.values()):
                return True
            time.sleep(_REMOVE_WAIT_SECONDS)
        return False

    def _enforcement(self, *, isolated: bool) -> EnforcedLimits:
        by = {name: f"control group v{_version(folder)}" for name, folder in self._groups.items()}
        abilities = bubblewrap.abilities()
        shared = by.get(_MEMORY, "")  # which is not a limit of its own, but one
        if isolated and abilities.sizes_shared_memory:
            shared = "bubblewrap"
        processes = by.get(_PIDS) or ("the kernel's ulimit" if self._counts_per_namespace else WATCHER)
        return EnforcedLimits(
            by.get(_MEMORY, WATCHER),
            processes,
            shared,
            by.get(_CPU, ""),
            "bubblewrap" if isolated and abilities.forbids_namespaces else "",
            "seccomp" if isolated and abilities.filters_calls else "",
        )


def end_leftovers(name: str) -> bool:
    """Kill all processes in an attempt's groups and remove these; return False while a process is alive there."""
    something_lives = False
    for mount in {mount.folder for mount in _mounts()}:
        for parent, folders, _ in os.walk(mount):
            if _PREFIX + name in folders:
                group = Path(parent, _PREFIX + name)
                if (group / _MOST_PIDS).exists():
                    (group / _MOST_PIDS).write_text("0")
                living = (group / "cgroup.procs").read_text().split()
                for pid in living:
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                if living:
                    something_lives = True
                else:
                    with suppress(OSError):  # an empty group that can't be removed does no harm
                        group.rmdir()
    return not something_lives


@dataclass(frozen=True)
class _Mount:
    """A hierarchy of control groups: its mount point, the part mounted there, and its controllers."""

    folder: Path
    root: str
    version: int
    controllers: frozenset[str]


def _mounts() -> list[_Mount]:
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _source, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            fields = before.split(" ")
            version = _V2 if kind == "cgroup2" else _V1
            found.append(_Mount(Path(fields[4]), fields[3], version, frozenset(options.split(","))))
    return found


def _own_folder(mount: _Mount) -> Path:
    """Return the folder of this process's group; the mount point where the group is outside of it."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, place = line.split(":", 2)
        ours = (
            not controllers if mount.version == _V2 else bool(mount.controllers & set(controllers.split(",")))
        )
        if ours and Path(place).is_relative_to(mount.root):
            return mount.folder / Path(place).relative_to(mount.root)
    return mount.folder


def _make_groups(name: str) -> dict[str, Path]:
    """Create a group for each available controller, a single one with version 2, and return them by controller."""
    groups: dict[str, Path] = {}
    for mount in sorted(_mounts(), key=lambda mount: -mount.version):
        if mount.version == _V2:
            groups |= _make_group_2(mount, name)
            continue
        for controller in _CONTROLLERS:
            if controller in mount.controllers and controller not in groups:
                folder = _own_folder(mount) / name
                if _make_folder(folder):
                    groups[controller] = folder
    return groups


def _make_group_2(mount: _Mount, name: str) -> dict[str, Path]:
    """Create a group of version 2 as near to our own as allowed, which is below one without processes."""
    own = _own_folder(mount)
    _leave_for_supervisor(own)
    for parent in (own, *own.parents):
        if not parent.is_relative_to(mount.folder):
            break
        if os.access(parent, os.W_OK) and {_MEMORY, _PIDS} <= _enabled_below(parent):
            folder = parent / name
            if _make_folder(folder):
                return {
                    controller: folder for controller in _CONTROLLERS if controller in _enabled_below(parent)
                }
    return {}


def _leave_for_supervisor(own: Path) -> None:
    """Move this process to a group below its own if it is alone there, as in one that systemd created for it."""
    if own.name == _SUPERVISOR or not own.name.endswith(".scope"):
        return
    if (own / "cgroup.procs").read_text().split() == [str(os.getpid())] and os.access(own, os.W_OK):
        (own / _SUPERVISOR).mkdir(exist_ok=True)
        (own / _SUPERVISOR / "cgroup.procs").write_text("0")


def _enabled_below(parent: Path) -> set[str]:
    """Enable the controllers for the groups below one, and return those that are enabled."""
    offered = set((parent / "cgroup.controllers").read_text().split())
    enabled = set((parent / "cgroup.subtree_control").read_text().split())
    for controller in sorted(offered.intersection(_CONTROLLERS) - enabled):
        with suppress(OSError):  # impossible in a group with processes; the result is read below
            (parent / "cgroup.subtree_control").write_text(f"+{controller}")
    return set((parent / "cgroup.subtree_control").read_text().split())


def _make_folder(folder: Path) -> bool:
    try:
        folder.mkdir()
    except OSError:  # read-only, not this user's, or too many
        return False
    return True


def _set_limits(groups: Mapping[str, Path], limits: ProcessLimits) -> None:
    quota = max(_LEAST_QUOTA_MICROSECONDS, round(limits.cpus * _PERIOD_MICROSECONDS))
    for controller, folder in groups.items():
        wanted: dict[str, str]
        if controller == _PIDS:
            wanted = {_MOST_PIDS: str(limits.processes)}
        elif controller == _CPU and _version(folder) == _V2:
            wanted = {"cpu.max": f"{quota} {_PERIOD_MICROSECONDS}"}
        elif controller == _CPU:
            wanted = {"cpu.cfs_period_us": str(_PERIOD_MICROSECONDS), "cpu.cfs_quota_us": str(quota)}
        elif _version(folder) == _V2:
            wanted = {"memory.max": str(limits.memory_bytes), "memory.swap.max": "0"}
        else:
            # Equal, so that nothing is swapped: processes over the limit are killed instead of slowed down.
            wanted = dict.fromkeys(
                ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), str(limits.memory_bytes)
            )
        for name, value in wanted.items():
            if (folder / name).exists() or not name.startswith(("memory.swap", "memory.memsw")):
                (folder / name).write_text(value)  # kernels without swap have no file for it


def _version(folder: Path) -> int:
    return _V2 if (folder / "cgroup.controllers").exists() else _V1


def _host_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


def _memory_of(processes: Sequence[Process], limit: int) -> int:
    """Return the memory of a tree, with shared memory counted once; exact only where it may exceed the limit."""
    files = _memory_files(processes)
    at_most = sum(process.memory_bytes for process in processes) + files
    if at_most <= limit:
        return at_most
    private = shared = 0
    for process in processes:
        try:
            thread = next(threads_with_own_files(process.pid))
            lines = (thread / "smaps_rollup").read_text().splitlines()[1:]
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            continue  # it has ended
        except OSError:
            private += process.memory_bytes  # a process that can't be read counts with all that it shares
            continue
        rollup = dict(line.split()[:2] for line in lines)
        of_files = int(rollup.get("Pss_Shmem:", 0))
        private += (int(rollup.get("Pss:", 0)) - of_files) * 1024
        shared += of_files * 1024
    return private + max(shared, files)


def _memory_files(processes: Sequence[Process]) -> int:
    """Return the bytes of a tree's files in memory, mapped or not: of its own /dev/shm, and memfd files."""
    outside = _SHM.stat().st_dev
    held: dict[tuple[int, int], int] = {}
    for process in processes:
        # It has ended, or can't be read, as any process may choose; bubblewrap's own process still shows its /dev/shm.
        with suppress(OSError):
            for folder in threads_with_own_files(process.pid):
                own = folder / "root" / _SHM.relative_to("/")
                device = own.stat().st_dev
                if device != outside:
                    found = os.statvfs(own)
                    held[device, 0] = (found.f_blocks - found.f_bfree) * found.f_frsize
                for descriptor in (folder / "fd").iterdir():
                    if str(descriptor.readlink()).startswith("/memfd:"):
                        file = descriptor.stat()
                        held[file.st_dev, file.st_ino] = file.st_blocks * 512
    return sum(held.values())


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_enforced_here(isolated="--isolated" in sys.argv))))
