"""What lies in an attempt's directory: names, records and their JSON; docs/run-directory.md is its manual.

Engine, runner and shim meet here and nowhere else, so it imports neither state nor anything heavy.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from foundation import files
from foundation.hardware import Hardware
from foundation.problems import DataProblem

VERSION = 1

ORDER = "run.json"
STOP = "stop.json"
LIMIT = "limit.json"
# What the agent's main process writes lies apart, because a container gets that folder alone.
OUTPUT = "output"
CLAIM = f"{OUTPUT}/claim"
STARTED = f"{OUTPUT}/started.json"
LOG = f"{OUTPUT}/run.log"
ENDING = f"{OUTPUT}/warden.json"
LOCK = "shim.lock"
SHIM_LOG = "shim.log"
EVENTS = "events.jsonl"
USAGE = "usage.jsonl"
EXIT = "exit.json"
VALIDATIONS = "validations.jsonl"
SUBMISSION = "submission"
SUBMISSION_FILE = "submission.csv"
LOGS = "logs"
CODE = "code"
SNAPSHOTS = "snapshots"
SCRATCH = "scratch"
GRADER = "grader"
GRADER_SOCKET = "grader.sock"
DESCRIPTION = "description.md"

ENGINE_LOCK = "engine.lock"
RUNNER = "runner"
INBOX = "inbox"
RUNNER_LOCK = "runner.lock"
RUNNER_LOG = "runner.log"

BUBBLEWRAP = "bubblewrap"
PLAIN = "plain"
DOCKER = "docker"

_MAX_RECORD_BYTES = 1 << 20


@dataclass(frozen=True)
class Order:
    """run.json: what to do, complete and for ever; secrets are in it by name only.

    Attributes:
        runtime: `bubblewrap`, `plain` or `docker`.
        network: `none`, `models` (only to `allowed_hosts`, through a proxy) or `open`.
        arguments, variables: of the start script; what a secrets hand-over holds takes their place.
        secret: whether arguments or variables hold secrets and so are handed over apart.
        image, grader_image: of the containers.
        container_runtime: what the daemon runs containers with; empty for its default.
        gpu_uuids: the devices that are leased to the attempt.
        privileged: whether the container gets all rights over the host, as the operator agreed to.
        keep_container: whether the agent's container stays when everything has been gathered.
        idle_limit_seconds: how long nothing may happen before the attempt is ended; None for ever.
        disk_limit_bytes: what the attempt may hold on disk before it is ended; None for any amount.
        obfuscated: whether the attempt's own description takes the place of the dataset's, and the
            obfuscated instructions that of the others.
        own_competition: the folder of a competition that is the user's own; empty for those of the benchmark.
    """

    version: int
    attempt_id: int
    sweep_id: str
    competition_id: str
    seed: int
    attempt: int
    agent_id: str
    agent_folder: str
    start: str
    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    secret: bool
    prepared_dir: str
    edition: str
    runtime: str
    network: str
    python_prefix: str
    time_limit_seconds: float
    grace_seconds: float
    cpus: float
    memory_bytes: int | None
    snapshot_every_seconds: float
    log_limit_bytes: int = 1 << 30
    submission_limit_bytes: int = 1 << 30
    image: str = ""
    grader_image: str = ""
    shm_bytes: int | None = None
    container_runtime: str = ""
    gpu_uuids: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    privileged: bool = False
    keep_container: bool = False
    idle_limit_seconds: float | None = None
    disk_limit_bytes: int | None = None
    obfuscated: bool = False
    own_competition: str = ""


@dataclass(frozen=True)
class Stop:
    """stop.json: somebody wants the attempt to end."""

    by: str
    at: float


@dataclass(frozen=True)
class Limited:
    """limit.json: the runner wants the attempt to end, because it went over a limit.

    Attributes:
        kind: `idle` or `disk`, which becomes the reason of its end.
        problem: the limit and what was measured, in words.
    """

    kind: str
    problem: str
    at: float


@dataclass(frozen=True)
class Started:
    """started.json: the agent's process is there.

    Attributes:
        pid: of the shim, which holds the lock.
        monotonic: the host's monotonic clock at the start, comparable within one `boot_id`.
    """

    pid: int
    at: float
    monotonic: float
    boot_id: str
    isolated: bool


@dataclass(frozen=True)
class AgentEnd:
    """warden.json: how the agent's process ended, written by its shim before anything is gathered.

    Attributes:
        reason: `exited`, `deadline` or `stopped` as the warden tells it; `unstarted` when the sandbox failed;
            `lost` when it was ended from outside.
        oom_kills: processes that the kernel killed for memory meanwhile, in the container or on this host.
        survivors: processes that the warden could not kill.
        log_error: why the log is not complete; empty when it is.
        problem: why the agent was not started; empty when it was.
    """

    reason: str
    exit_code: int | None
    signal: int | None
    started_at: float
    ended_at: float
    oom_kills: int = 0
    survivors: int = 0
    log_error: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Exit:
    """exit.json: how the attempt ended, written when everything that it left has been gathered.

    Attributes:
        reason: `exited`, `deadline`, `stopped`, `idle` or `disk` when it was ended for that, or `lost` when
            nobody saw how it ended.
        oom_kills: processes that the kernel killed for memory on this host meanwhile.
        submission_sequence: the snapshot that is the final submission; None when there is none.
        problem: what went wrong around the agent, in words; empty when nothing did.
    """

    reason: str
    exit_code: int | None
    signal: int | None
    started_at: float | None
    ended_at: float
    oom_kills: int = 0
    submission_sequence: int | None = None
    submission_problem: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Handed:
    """A file in the runner's inbox: an attempt that is the runner's until the engine takes the file away."""

    attempt_id: int
    directory: str


Record = TypeVar("Record", Order, Stop, Limited, Started, AgentEnd, Exit, Handed)


def write(path: Path, record: Order | Stop | Limited | Started | AgentEnd | Exit | Handed) -> None:
    """Put a record in its place in one step."""
    files.write_json(path, asdict(record))


def read(path: Path, kind: type[Record]) -> Record:
    """Read a record; fields that this version does not know are left out.

    Raises:
        DataProblem: it is missing, no record of this kind, or of a newer protocol.
    """
    with files.reading_untrusted(path, max_bytes=_MAX_RECORD_BYTES) as stream:
        content = stream.read()
    try:
        values: dict[str, Any] = json.loads(content)
        if values.get("version", VERSION) > VERSION:
            raise DataProblem(
                f"{path} was written by a newer version", f"its protocol is {values['version']}"
            )
        known = {field.name for field in fields(kind)}
        if kind is Order:
            values["variables"] = [tuple(pair) for pair in values["variables"]]
            values = {
                name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
            }
        return kind(**{name: value for name, value in values.items() if name in known})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataProblem(f"{path} is damaged", str(error)) from error


def read_if_there(path: Path, kind: type[Record]) -> Record | None:
    """Read a record that may not have been written yet."""
    return read(path, kind) if path.exists() else None


def attempt_folder(sweep_id: str, competition_id: str, seed: int, attempt: int) -> str:
    """Where an attempt lies, relative to the state directory."""
    return f"runs/{sweep_id}/{competition_id}/seed-{seed}/attempt-{attempt}"


def was_asked_to_end(attempt: Path) -> bool:
    """Whether somebody, or a limit, wants the attempt to end."""
    return (attempt / STOP).exists() or (attempt / LIMIT).exists()


def make_folders(attempt: Path) -> None:
    """Make the folders of an attempt that are there from its beginning."""
    for name in (SUBMISSION, LOGS, CODE, SNAPSHOTS, OUTPUT):
        (attempt / name).mkdir(parents=True, exist_ok=True)


def inbox(state_dir: Path) -> Path:
    """Where the engine hands attempts to the runner."""
    return state_dir / RUNNER / INBOX


@dataclass(frozen=True)
class AgentStarted:
    """The agent's process is there.

    Attributes:
        image: the digest of what it runs in; empty where there is none.
        hardware: what it runs on; None in what older versions have written.
    """

    at: float
    isolated: bool
    image: str = ""
    hardware: Hardware | None = None


@dataclass(frozen=True)
class SubmissionTaken:
    """A snapshot of the submission lies in the attempt's directory, at `path` relative to it."""

    at: float
    sequence: int
    elapsed_seconds: float
    sha256: str
    bytes: int
    path: str
    final: bool


@dataclass(frozen=True)
class SubmissionRefused:
    """What lies where the submission should be can't be taken."""

    at: float
    text: str


@dataclass(frozen=True)
class AgentEnded:
    """The agent's process is gone."""

    at: float
    reason: str
    exit_code: int | None
    signal: int | None


@dataclass(frozen=True)
class Collected:
    """Everything is gathered and exit.json is there."""

    at: float


RunReport = AgentStarted | SubmissionTaken | SubmissionRefused | AgentEnded | Collected

_KINDS: dict[str, type[RunReport]] = {
    "started": AgentStarted,
    "submission": SubmissionTaken,
    "refused": SubmissionRefused,
    "ended": AgentEnded,
    "collected": Collected,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_line(report: RunReport) -> dict[str, Any]:
    """Write a report as a line of events.jsonl."""
    return {"kind": _NAMES[type(report)], **asdict(report)}


def from_line(line: dict[str, Any]) -> RunReport | None:
    """Read a line; None for a kind or form that this version does not know."""
    kind = _KINDS.get(str(line.get("kind")))
    if kind is None:
        return None
    values = {name: value for name, value in line.items() if name != "kind"}
    try:
        if values.get("hardware") is not None:
            told = values["hardware"]
            values["hardware"] = Hardware(**told | {"gpus": tuple(told["gpus"])})
        return kind(**values)
    except (TypeError, KeyError):
        return None
