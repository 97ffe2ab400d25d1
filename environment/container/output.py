"""The folder `output` of an attempt, as its main process writes it, in a container or as a shim.

Reading it, and all other files of an attempt, are in `environment/runner/protocol.py`.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

CLAIM = "claim"
STARTED = "started.json"
LOG = "run.log"
ENDING = "warden.json"
TIDIED = "tidied.json"

# What the names of the agent's variables begin with in its main process, which they must not affect.
FOR_AGENT = "MLEBENCH_FOR_AGENT_"
# Of a container, in version 2 and in version 1 of control groups.
OOM_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
MOST_PROBLEMS = 20
# Enough for some ten gigabytes; it is limited because the agent decides how much there is, and slot and GPUs stay busy.
TIDY_SECONDS = 60.0
_FULL_DISK_SECONDS = 0.5
# As in `foundation/problem_codes.py`, which is not there in containers.
EXITED = "exited"
DEADLINE = "deadline"
STOPPED = "stopped"
UNSTARTED = "unstarted"
NOT_STARTED = "not_started"


@dataclass(frozen=True)
class Started:
    """started.json: the agent's process has been started.

    Attributes:
        pid: of the main process.
        monotonic: the host's monotonic clock at the start, comparable within one `boot_id`.
        isolated: whether the agent is isolated from the rest of the host.
        unenforced: the codes of the limits that nothing enforces there.
        runtime, image: the runtime and the digest of the image, where the main process has chosen them.
    """

    pid: int
    at: float
    monotonic: float
    boot_id: str
    isolated: bool
    unenforced: tuple[str, ...] = ()
    runtime: str = ""
    image: str = ""

    @classmethod
    def now(
        cls, pid: int, *, isolated: bool, unenforced: tuple[str, ...] = (), runtime: str = "", image: str = ""
    ) -> Started:
        """Return the record of a start at this moment."""
        return cls(pid, time.time(), time.monotonic(), boot_id(), isolated, unenforced, runtime, image)


@dataclass(frozen=True)
class HostProblem:
    """A problem of the host that may have ended an agent. Unlike a log it is evidence: it was measured on the host.

    Attributes:
        code: of `foundation.problem_codes.ProblemCode`; that of another version is kept as it is.
        text: the problem for people.
        devices: the ids of the GPUs that are lost.
        path, free_bytes: the folder on whose disk there is no space left, and how much is.
    """

    code: str
    text: str
    devices: tuple[str, ...] = ()
    path: str = ""
    free_bytes: int | None = None


@dataclass(frozen=True)
class Ending:
    """How an attempt ended: in warden.json as its main process saw it, in exit.json with all that was collected.

    Attributes:
        reason: `exited`, `deadline` or `stopped` as the warden reports it; `unstarted` when the agent did not run;
            `memory` or `processes` when it exceeded a limit that the kernel does not enforce; in exit.json also
            `idle` or `disk` when it was ended for that, and `lost` when its end was not observed.
        exit_code: of the agent; None when a signal ended it, or when it is unknown.
        signal: the signal that ended the agent; None when it exited.
        started_at: None when the agent has not run, or its start was not observed.
        oom_kills: processes that the kernel killed for memory meanwhile: the agent's, or where it has no control
            group of its own, any on this host.
        survivors: processes that could not be killed (another user's, or stuck in the kernel).
        log_error: why the log is not complete; empty when it is.
        submission_sequence: the snapshot that is the final submission, in exit.json; None when there is none.
        submission_problem: why the file that the agent left is not a submission.
        submission_too_large: whether only its size, over the order's limit, keeps it from being one.
        problem: what went wrong around the agent, in words; empty when nothing did.
        problem_code: its code, as that of a `HostProblem`; empty where the reason says all.
        host_problem: the problem of the host that may have ended the agent, in exit.json; None where none was found.
    """

    reason: str
    exit_code: int | None
    signal: int | None
    started_at: float | None
    ended_at: float
    oom_kills: int = 0
    survivors: int = 0
    log_error: str = ""
    submission_sequence: int | None = None
    submission_problem: str = ""
    problem: str = ""
    problem_code: str = ""
    host_problem: HostProblem | None = None
    submission_too_large: bool = False

    @classmethod
    def unseen(cls, reason: str, problem: str = "", problem_code: str = "") -> Ending:
        """Return the record of an end at this moment, of which only the reason is known."""
        return cls(reason, None, None, None, time.time(), problem=problem, problem_code=problem_code)


@dataclass(frozen=True)
class Tidied:
    """tidied.json: the agent's files have been prepared for collection, after its ending was written.

    Attributes:
        problems: what could not be opened or searched for secrets, one line each, a few at most.
    """

    problems: tuple[str, ...]


@dataclass(frozen=True)
class ServiceRestarted:
    """Event, and a line of restarts.jsonl: a service for the agent died while the agent ran.

    Attributes:
        service: such as `the validation server`.
        text: how it died and what was done, in words that follow its name.
        from_outside: whether an agent cannot have caused it, so that it is evidence for a problem of the host.
    """

    at: float
    service: str
    text: str
    from_outside: bool


def claim(path: Path) -> bool:
    """Claim an attempt, and return False when it is claimed already; only the claimant may run the agent."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return False
    return True


def append(path: Path, record: ServiceRestarted) -> None:
    """Append a record to a file as a line."""
    with path.open("ab", buffering=0) as stream:
        stream.write(json.dumps(asdict(record)).encode() + b"\n")


def write_when_there_is_room(path: Path, record: Started | Ending | Tidied) -> None:
    """Write a record that must not get lost, waiting while the disk is full."""
    while True:
        try:
            write(path, record)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            time.sleep(_FULL_DISK_SECONDS)
        else:
            return


def write(path: Path, record: Started | Ending | Tidied) -> None:
    """Write a record atomically and durably."""
    temporary = path.with_name(f".{path.name}.partial")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(asdict(record), stream)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def boot_id() -> str:
    """Return the id of the host's current boot; monotonic clocks are comparable only within one."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def oom_kills(counters: Iterable[Path]) -> int:
    """Return how many processes the kernel has killed for memory, summed over all counters that exist."""
    found = 0
    for path in counters:
        if path.exists():
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    found += int(value)
    return found
