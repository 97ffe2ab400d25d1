"""The files of an attempt's directory: names, records and their JSON; docs/run-directory.md is the manual.

Engine, runner and shim share these files and nothing else. The records of an attempt's main process, which has the
standard library alone, are in `environment/container/output.py`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending, ServiceRestarted
from mlebench_console.environment.gateway import orders
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.foundation import files
from mlebench_console.foundation.conditions import RunConditions
from mlebench_console.foundation.measurements import Hardware
from mlebench_console.foundation.problems import DataProblem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VERSION = 2

ORDER = "run.json"
STOP = "stop.json"
LIMIT = "limit.json"
# What the agent's main process writes lies apart, because a container gets that folder alone.
OUTPUT = "output"
CLAIM = f"{OUTPUT}/{output.CLAIM}"
STARTED = f"{OUTPUT}/{output.STARTED}"
LOG = f"{OUTPUT}/{output.LOG}"
ENDING = f"{OUTPUT}/{output.ENDING}"
TIDIED = f"{OUTPUT}/{output.TIDIED}"
LOCK = "shim.lock"
SHIM_LOG = "shim.log"
EVENTS = "events.jsonl"
USAGE = "usage.jsonl"
EXIT = "exit.json"
VALIDATIONS = "validations.jsonl"
MODEL_CALLS = orders.MODEL_CALLS
OPEN_CALLS = orders.OPEN_CALLS
SHARED_BUDGET = orders.SHARED_BUDGET
RECORDED_CALLS = "recorded_calls.jsonl"
GATEWAY_LOCK = orders.GATEWAY_LOCK
GATEWAY_LOG = "gateway.log"
# What the proxy writes lies apart, because its container gets that folder alone.
PROXY = "proxy"
TRAFFIC = f"{PROXY}/traffic.json"
RESTARTS = "restarts.jsonl"
SUBMISSION = "submission"
SUBMISSION_FILE = "submission.csv"
LOGS = "logs"
CODE = "code"
SNAPSHOTS = "snapshots"
CODE_SNAPSHOTS = "code_snapshots"
SCRATCH = "scratch"
# Room that is free again when an attempt ends, to record how.
RESERVE = "reserve"
# The sockets of the processes that serve an agent: its validation server, model gateway and proxy.
SERVICES = "services"
VALIDATION_SOCKET = "validation.sock"
GATEWAY_SOCKET = "gateway.sock"
UPLOADS = "uploads"
DESCRIPTION = "description.md"
# What lies on a node's own disk, where links lead, in a job of a batch system.
DATASET = "dataset"
ON_THE_NODE = (SCRATCH, SERVICES, DATASET)
STAGING = "staging.json"
GPUS = "gpus.json"
JOB_SCRIPT = "job.sh"
JOB_CLAIM = "job.claim"
JOB_LOG = "job.log"
HEARTBEATS = "heartbeats.jsonl"

RUNNER = "runner"
INBOX = "inbox"
RUNNER_LOCK = "runner.lock"
RUNNER_LOG = "runner.log"
IMAGE_CACHE = "image-cache"
# There while the daemon may have containers of this state directory.
CONTAINERS = f"{RUNNER}/containers"

BUBBLEWRAP = "bubblewrap"
PLAIN = "plain"
DOCKER = "docker"
APPTAINER = "apptainer"
AUTO = "auto"  # the first that works where the attempt runs, which its main process finds out
# Those that run an agent in its exported image, by which `auto` prefers them.
OF_IMAGE_FILES = (BUBBLEWRAP, APPTAINER)
# What a sweep may ask for; `process` becomes bubblewrap, or plain where that does not work.
PROCESS = "process"
RUNTIMES = (PROCESS, PLAIN, DOCKER, AUTO, *OF_IMAGE_FILES)
NETWORKS = ("none", "models", "open")


# How a dataset is brought to a node's own disk.
COPY = "copy"
SQUASHFS = "squashfs"

# The most processes and threads of one attempt.
MOST_PROCESSES = 4096

# Kinds of a Shortfall.
UNSEARCHED = "unsearched"
UNMEASURED = "unmeasured"
UNREMOVED = "unremoved"
CODE_NOT_KEPT = "code_not_kept"

_MAX_RECORD_BYTES = 1 << 20
_LARGEST_INTEGER = (1 << 63) - 1  # that a column of the state holds


@dataclass(frozen=True)
class ImageFile:
    """An agent's image as a compressed archive of its file system, with its daemon's facts about it.

    FILE.json beside the file contains the same.

    Attributes:
        name: of the image.
        path: of the file.
        sha256, bytes: of the file.
        unpacked_bytes: of the archive of the file system in it.
        image: the digest that the image had at its daemon.
        created: when the file was made.
        labels: of the image; those that identify its sources are compared with the expected ones.
        variables: of the image.
        user, uid, gid, home: of the agent's user in it.
    """

    name: str
    path: str
    sha256: str
    bytes: int
    unpacked_bytes: int
    image: str
    created: float
    labels: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    user: str = "nonroot"
    uid: int = 1000
    gid: int = 1000
    home: str = "/home/nonroot"


@dataclass(frozen=True)
class Order:
    """run.json: the complete order of an attempt, which never changes; secrets are in it by name only.

    Attributes:
        token: a permanently unique id of the attempt, in the names of its containers and of its file in the inbox.
        agent_version: the digest of `agent_folder`; empty where it is not compared.
        conditions: of the run. Its runtime is `bubblewrap`, `apptainer`, `plain`, `docker`, or `auto` for the first
            that works.
        arguments, variables: of the start script; those passed as secrets replace them.
        secret: whether arguments or variables contain secrets and so are passed separately.
        image, grader_image: of the containers.
        image_labels, grader_labels: the labels of these images if they were built from the right files; empty
            for runtimes without images.
        agents_dir: the agents folder that the sweep was launched with, from which its image is built.
        gpu_uuids: the devices that are leased to the attempt; a batch system chooses them on its node.
        privileged: whether the container is privileged, as the operator agreed to.
        own_competition: the folder of a user's own competition; empty for the benchmark's.
        providers: the model providers that the attempt reaches through its gateway; none without one.
        model_token: the agent's substitute for their keys, valid only for its gateway.
        model_prices: the operator's own prices, by patterns of models' names.
        image_file: the agent's exported image, for runtimes that need no daemon; None for the host's own system.
    """

    version: int
    attempt_id: int
    token: str
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
    python_prefix: str
    conditions: RunConditions
    log_limit_bytes: int = 1 << 30
    submission_limit_bytes: int = 1 << 30
    image: str = ""
    grader_image: str = ""
    gpu_uuids: tuple[str, ...] = ()
    privileged: bool = False
    own_competition: str = ""
    agent_version: str = ""
    image_labels: tuple[tuple[str, str], ...] = ()
    grader_labels: tuple[tuple[str, str], ...] = ()
    agents_dir: str = ""
    providers: tuple[ModelProvider, ...] = ()
    model_token: str = ""
    model_prices: tuple[tuple[str, dict[str, float]], ...] = ()
    image_file: ImageFile | None = None


@dataclass(frozen=True)
class Stop:
    """stop.json: a person's request to end the attempt."""

    by: str
    at: float


@dataclass(frozen=True)
class LimitExceeded:
    """limit.json: the runner's request to end the attempt, because it exceeded a limit.

    Attributes:
        kind: `idle`, `disk`, `deadline`, or `lost` where a batch system ends it; it becomes the reason of the ending.
        problem: the limit and the measurement, in words.
        problem_code: what went wrong where it is `lost`, as in an `Ending`.
    """

    kind: str
    problem: str
    at: float
    problem_code: str = ""


@dataclass(frozen=True)
class StagingOrder:
    """staging.json: how a job brings its public data to its node's own disk; without it they are read in place.

    Attributes:
        mode: `copy` (the files that the dataset's manifest lists) or `squashfs` (an image of them, which is mounted).
        sha256: of the manifest, or of the image.
        image: the path of the image.
        limit_seconds: how long that may take.
    """

    mode: str
    sha256: str
    image: str = ""
    limit_seconds: float = 3600.0


@dataclass(frozen=True)
class GivenGpus:
    """gpus.json: the devices that a batch system gave to a job.

    Attributes:
        visible: its value of CUDA_VISIBLE_DEVICES.
        uuids: the driver's ids of them; empty where there is no driver.
        nodes: the files in /dev that a sandbox needs for them; empty without a driver, and for parts of GPUs.
    """

    visible: str
    uuids: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class InboxEntry:
    """A file in the runner's inbox: an attempt that the runner supervises until the engine removes the file."""

    attempt_id: int
    directory: str


@dataclass(frozen=True)
class Heartbeat:
    """A line of heartbeats.jsonl: a sign of life of a job's runner, with the sizes of its files.

    Attributes:
        number: counts them, since clocks of hosts differ.
        events, usage, model_calls: the sizes of these files.
        ended: whether exit.json has been written.
        staged, to_stage: the dataset's bytes that are on the node, and all; None when staging is over.
        has_traffic: whether traffic.json exists.
    """

    number: int
    node: str
    job: str
    events: int
    usage: int
    model_calls: int
    ended: bool
    staged: int | None = None
    to_stage: int | None = None
    has_traffic: bool = False


@dataclass(frozen=True)
class Staged:
    """Event: the dataset is on the node's own disk.

    Attributes:
        seconds: how long that took, before the agent's time began.
        reused: whether an earlier job had staged it.
    """

    at: float
    node: str
    bytes: int
    seconds: float
    reused: bool


@dataclass(frozen=True)
class AgentStarted:
    """Event: the agent's process has been started.

    Attributes:
        image: the digest of its image; empty without one.
        recipe: what that image and its mlebench-env were built from, by its labels; empty where unknown.
        runtime: its runtime; empty where that is the order's.
        hardware: of its host; None where it is unknown.
        unenforced: the codes of the limits that nothing enforces there.
    """

    at: float
    isolated: bool
    image: str = ""
    hardware: Hardware | None = None
    unenforced: tuple[str, ...] = ()
    recipe: str = ""
    runtime: str = ""


@dataclass(frozen=True)
class SubmissionTaken:
    """Event: a snapshot of the submission was taken, at `path` relative to the attempt's directory."""

    at: float
    sequence: int
    elapsed_seconds: float
    sha256: str
    bytes: int
    path: str


@dataclass(frozen=True)
class SubmissionRefused:
    """Event: no snapshot can be taken of the file at the submission's path.

    Attributes:
        code: why: `too_large`, `not_regular` or `unreadable`.
        times: how often this has happened; reported the first, tenth, hundredth time and so on, and at the end.
    """

    at: float
    text: str
    code: str
    times: int = 1


@dataclass(frozen=True)
class Shortfall:
    """Event: something about an attempt could not be done.

    Attributes:
        kind: `UNSEARCHED`: some of its files were not searched for secrets; `UNMEASURED`: some of its disk usage does
            not count; `UNREMOVED`: some files that only served the run are left; `CODE_NOT_KEPT`: at a submission.
    """

    at: float
    kind: str
    text: str


@dataclass(frozen=True)
class Collected:
    """Event: everything is collected and exit.json is written."""

    at: float


RunEvent = (
    Staged
    | AgentStarted
    | SubmissionTaken
    | SubmissionRefused
    | ServiceRestarted
    | Shortfall
    | Ending
    | Collected
)

_EVENTS: dict[str, type[RunEvent]] = {
    "staged": Staged,
    "started": AgentStarted,
    "submission": SubmissionTaken,
    "refused": SubmissionRefused,
    "restarted": ServiceRestarted,
    **dict.fromkeys((UNSEARCHED, UNMEASURED, UNREMOVED, CODE_NOT_KEPT), Shortfall),
    "ended": Ending,
    "collected": Collected,
}
_KINDS = {event: kind for kind, event in _EVENTS.items()}


class DamagedRecord(DataProblem):
    """A record exists and can be read, but is invalid: trying again does not help."""


Record = TypeVar("Record", bound="DataclassInstance")


def write(path: Path, record: DataclassInstance) -> None:
    """Write a record atomically."""
    files.write_json(path, asdict(record))


def read(path: Path, kind: type[Record]) -> Record:
    """Read a record, ignoring fields that this version does not know.

    Raises:
        DamagedRecord: it is not a record of this kind.
        DataProblem: it is missing, can't be read, or is of another version of the protocol.
    """
    import msgspec  # imported here, as it is slow and most importers only need the names

    with files.reading_untrusted(path, max_bytes=_MAX_RECORD_BYTES) as stream:
        content = stream.read()
    try:
        values = msgspec.json.decode(content, type=dict[str, Any])
        version = values.get("version", VERSION)
        if version != VERSION:
            age = "a newer" if version > VERSION else "an older"
            raise DataProblem(
                f"{path} was written by {age} version", f"its protocol is {version}, this one is {VERSION}"
            )
        return msgspec.convert(values, kind)
    except (msgspec.MsgspecError, TypeError) as error:
        raise DamagedRecord(f"{path} is damaged", str(error)) from error


def read_if_there(path: Path, kind: type[Record]) -> Record | None:
    """Read a record that may not have been written yet."""
    return read(path, kind) if path.exists() else None


def heartbeat_from_line(line: dict[str, Any]) -> Heartbeat | None:
    """Convert a line of heartbeats; None for an invalid one."""
    import msgspec

    try:
        return msgspec.convert(line, Heartbeat)
    except msgspec.ValidationError:
        return None


def kind_of(event: RunEvent) -> str:
    """Return the kind of an event, as its line has it."""
    return event.kind if isinstance(event, Shortfall) else _KINDS[type(event)]


def event_to_line(event: RunEvent) -> dict[str, Any]:
    """Return an event as a line of events.jsonl."""
    at = event.ended_at if isinstance(event, Ending) else event.at
    return {"kind": kind_of(event), "at": at, **asdict(event)}


def event_from_line(line: dict[str, Any]) -> RunEvent | None:
    """Convert a line to an event; None for a kind or form that this version does not know."""
    import msgspec

    kind = _EVENTS.get(str(line.get("kind")))
    if any(isinstance(value, int) and abs(value) > _LARGEST_INTEGER for value in line.values()):
        return None
    try:
        return None if kind is None else msgspec.convert(line, kind)
    except msgspec.ValidationError:
        return None


def attempt_folder(sweep_id: str, competition_id: str, seed: int, attempt: int, token: str) -> str:
    """Return the unique directory of an attempt, relative to the state directory."""
    return f"runs/{sweep_id}/{competition_id}/seed-{seed}/attempt-{attempt}-{token}"


def snapshot_name(sequence: int) -> str:
    """Return the path of a snapshot, relative to the attempt's directory."""
    return f"{SNAPSHOTS}/{sequence}.csv"


def names_in(attempt: Path) -> frozenset[str]:
    """Return the names in an attempt's directory; none where it does not exist.

    It makes a single call to a file system that hosts may share, instead of one for each file.
    """
    try:
        return frozenset(os.listdir(attempt))  # noqa: PTH208 - names are enough
    except FileNotFoundError:
        return frozenset()


def was_asked_to_end(names: frozenset[str]) -> bool:
    """Return whether a person or a limit has requested the attempt's end, by the names in its directory."""
    return STOP in names or LIMIT in names


def read_order(attempt: Path) -> Order:
    """Read the order in an attempt's directory, with the devices that a batch system has given to it.

    Raises:
        DamagedRecord, DataProblem: as `read`.
    """
    order, given = read(attempt / ORDER, Order), read_if_there(attempt / GPUS, GivenGpus)
    return order if given is None else replace(order, gpu_uuids=given.uuids)


def prepared_data(attempt: Path, order: Order) -> Path:
    """Return the folder that contains the dataset's `public`: in a job one without answers, on its node's own disk."""
    staged = attempt / DATASET
    return staged.resolve() if staged.exists() else Path(order.prepared_dir)


def make_folders(attempt: Path) -> None:
    """Create the folders that an attempt has from its beginning, which no other user can enter."""
    attempt.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in (SUBMISSION, LOGS, CODE, SNAPSHOTS, OUTPUT):
        (attempt / name).mkdir(exist_ok=True)


def needs_runner(state_dir: Path) -> bool:
    """Return whether a runner is needed."""
    return has_placed(state_dir) or (state_dir / CONTAINERS).exists()


def has_placed(state_dir: Path) -> bool:
    """Return whether an attempt is in the runner's inbox."""
    return any(inbox(state_dir).glob("[!.]*.json"))


def inbox(state_dir: Path) -> Path:
    """Return the folder with a file for each attempt that the engine hands to the runner."""
    return state_dir / RUNNER / INBOX
