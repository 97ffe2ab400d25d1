"""What lies in an attempt's directory: names, records and their JSON; docs/run-directory.md is its manual.

Engine, runner and shim meet here and nowhere else. The records of an attempt's main process, which has the
standard library alone, are in `environment/container/output.py`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from environment.container import output
from environment.container.output import Ending, ServiceRestarted, Started, Tidied
from foundation import files
from foundation.hardware import Hardware
from foundation.problems import DataProblem

VERSION = 1

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
MODEL_CALLS = "model_calls.jsonl"
OPEN_CALLS = "model_calls.open.jsonl"
ALLOWANCE = "allowance.json"
ALLOWANCE_REQUEST = "allowance_wanted.json"
RECORDED_CALLS = "recorded_calls.jsonl"
REPLAY = "replay.jsonl"
GATEWAY_LOCK = "gateway.lock"
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
GRADER = "grader"
GRADER_SOCKET = "grader.sock"
GATEWAY_SOCKET = "gateway.sock"
UPLOADS = "uploads"
DESCRIPTION = "description.md"
# What lies on a node's own disk, where links lead, in a job of a batch system.
DATASET = "dataset"
ON_THE_NODE = (SCRATCH, GRADER, DATASET)
STAGING = "staging.json"
GPUS = "gpus.json"
JOB_SCRIPT = "job.sh"
JOB_CLAIM = "job.claim"
JOB_LOG = "job.log"
HEARTBEATS = "heartbeats.jsonl"

# The reason of an end that nobody saw, or that was not the agent's and not its limits' doing.
LOST = "lost"

ENGINE_LOCK = "engine.lock"
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
ROOTFS = "rootfs"
APPTAINER = "apptainer"
PODMAN = "podman"
AUTO = "auto"  # the first that works where the attempt runs, which its main process finds out
# Those that run an agent in its image as one file, where no daemon is.
OF_AN_IMAGE_FILE = (ROOTFS, APPTAINER, PODMAN)


# How a dataset comes to a node's own disk.
COPY = "copy"
SQUASHFS = "squashfs"

# That one attempt may have at once, threads included.
MOST_PROCESSES = 4096

_MAX_RECORD_BYTES = 1 << 20
_LARGEST_INTEGER = (1 << 63) - 1  # that a column of the state holds


@dataclass(frozen=True)
class ModelProvider:
    """A provider of models that an attempt's gateway serves.

    Attributes:
        name: what the agent's addresses and the records call it.
        dialect: `openai`, `anthropic` or `gemini`.
        url: where it is; of an OpenAI-compatible server the address at which its clients are pointed.
        key: the operator's variable that holds the key; empty where none is asked for.
        include_usage: whether streams may be asked to tell what they have used (`stream_options`).
        requests_per_minute, tokens_per_minute: what all runs of a host together may send; None for any amount.
    """

    name: str
    dialect: str
    url: str
    key: str = ""
    include_usage: bool = True
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True)
class ImageFile:
    """An agent's image as one file, and what its daemon knew of it; FILE.json beside the file holds the same.

    Attributes:
        name: of the image.
        path: of the file.
        format: `squashfs`, `archive` (tar) or `sif`.
        sha256, bytes: of the file.
        image: the digest that the image had at its daemon.
        created: when the file was made.
        labels: of the image; those that tell what it was built from are compared with the files that are meant.
        variables: of the image.
        user, uid, gid, home: of the agent's user in it.
    """

    name: str
    path: str
    format: str
    sha256: str
    bytes: int
    image: str
    created: float
    labels: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    user: str = "nonroot"
    uid: int = 1000
    gid: int = 1000
    home: str = "/home/nonroot"


@dataclass(frozen=True)
class HostTraffic:
    """What has passed by the proxy to the hosts of one rule, and back, so far."""

    connections: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


@dataclass(frozen=True)
class Traffic:
    """traffic.json: what has passed by the proxy, by the rule that let it through.

    Attributes:
        refused: how often well-known hosts were asked for in vain, and all others together.
    """

    hosts: dict[str, HostTraffic]
    refused: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Order:
    """run.json: what to do, complete and for ever; secrets are in it by name only.

    Attributes:
        token: names the attempt and no other, ever; empty in what older versions have written.
        agent_version: the digest of what is in `agent_folder`; empty where a sweep was launched by an older version.
        runtime: `bubblewrap`, `rootfs`, `apptainer`, `podman`, `plain`, `docker`, or `auto` for what works there.
        network: `none`, `models` (only to `allowed_hosts`, through a proxy) or `open`.
        arguments, variables: of the start script; what is handed over as secrets takes their place.
        secret: whether arguments or variables hold secrets and so are handed over apart.
        image, grader_image: of the containers.
        image_labels, grader_labels: that these images have where they were built from the files that are meant; empty
            in what older versions have written.
        agents_dir: the agents folder that the sweep was launched with, from which its image is built.
        container_runtime: what the daemon runs containers with; empty for its default.
        container_options: more that the agent's container is created with, each as the daemon's client calls it and a
            JSON value, such as `cpuset_cpus="0-3"`.
        gpus: how many devices the attempt is to have; which these are, a batch system says on its node.
        gpu_uuids: the devices that are leased to the attempt.
        privileged: whether the container gets all rights over the host, as the operator agreed to.
        keep_container: whether the agent's container stays when everything has been gathered.
        idle_limit_seconds: how long nothing may happen before the attempt is ended; None for ever.
        disk_limit_bytes: what the attempt may hold on disk before it is ended; None for any amount.
        obfuscated: whether the attempt's own description takes the place of the dataset's, and the
            obfuscated instructions that of the others.
        own_competition: the folder of a competition that is the user's own; empty for those of the benchmark.
        providers: the providers of models that the attempt reaches through its gateway; none without one.
        model_token: what the agent has in place of their keys; worth nothing to anybody but its gateway.
        model_grants: what providers may do for the agent beside answering.
        budget_calls, budget_tokens, budget_usd: what its model calls may come to; None for any amount.
        model_prices: the operator's own, by patterns of models' names.
        record_calls: whether what is asked and answered is kept, too.
        replay_of: the run whose recorded calls are served in place of providers; None for none.
        image_file: the agent's image as one file, for runtimes that need no daemon; None without one.
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
    container_options: tuple[str, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    privileged: bool = False
    keep_container: bool = False
    idle_limit_seconds: float | None = None
    disk_limit_bytes: int | None = None
    obfuscated: bool = False
    own_competition: str = ""
    token: str = ""
    agent_version: str = ""
    image_labels: tuple[tuple[str, str], ...] = ()
    grader_labels: tuple[tuple[str, str], ...] = ()
    agents_dir: str = ""
    providers: tuple[ModelProvider, ...] = ()
    model_token: str = ""
    model_grants: tuple[str, ...] = ()
    budget_calls: int | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    model_prices: tuple[tuple[str, dict[str, float]], ...] = ()
    record_calls: bool = False
    replay_of: int | None = None
    gpus: int = 0
    image_file: ImageFile | None = None

    @property
    def name(self) -> str:
        """What the attempt's containers and its file in the inbox are named after; its number in older versions."""
        return self.token or str(self.attempt_id)


@dataclass(frozen=True)
class Stop:
    """stop.json: somebody wants the attempt to end."""

    by: str
    at: float


@dataclass(frozen=True)
class LimitExceeded:
    """limit.json: the runner wants the attempt to end, because it went over a limit.

    Attributes:
        kind: `idle`, `disk`, `deadline`, or `lost` where a batch system ends it, which becomes the reason of its end.
        problem: the limit and what was measured, in words.
    """

    kind: str
    problem: str
    at: float


@dataclass(frozen=True)
class StagingOrder:
    """staging.json: how a job brings its public data to its node's own disk; without it they are read where they lie.

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
        visible: as it names them, in CUDA_VISIBLE_DEVICES.
        uuids: as the driver names them; empty where there is no driver to ask.
        nodes: the files in /dev that a sandbox needs for them, and no other; empty likewise, and for parts of GPUs.
    """

    visible: str
    uuids: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallAmounts:
    """What model calls come to."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True)
class RunAllowance:
    """allowance.json: what all model calls of the attempt may come to by now; None for any amount.

    Attributes:
        used_up: whether the budgets that it shares have no more, so that nothing has to be waited for.
        of: whose budgets these are, in words.
    """

    calls: int | None
    tokens: int | None
    usd: float | None
    used_up: bool
    of: str


@dataclass(frozen=True)
class AllowanceRequest:
    """allowance_wanted.json: what all model calls of the attempt would come to.

    Attributes:
        least: with the next call, as far as it is known before it is answered.
        wanted: with what it and another one may come to.
    """

    least: CallAmounts
    wanted: CallAmounts


@dataclass(frozen=True)
class InboxEntry:
    """A file in the runner's inbox: an attempt that is the runner's until the engine takes the file away."""

    attempt_id: int
    directory: str


@dataclass(frozen=True)
class Heartbeat:
    """A line of heartbeats.jsonl: the runner of a job lives, and how much it has written.

    Attributes:
        number: counts them, since clocks of hosts differ.
        events, usage, model_calls: the sizes of these files.
        ended: whether exit.json is there.
        staged, to_stage: of the dataset's bytes, those that are on the node, and all; None when that is over.
        has_traffic: whether there is a traffic.json.
        asked: changes whenever the model gateway asks for more of a shared budget (`allowance_wanted.json`).
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
    asked: int = 0


@dataclass(frozen=True)
class Staged:
    """Event: the dataset is on the node's own disk.

    Attributes:
        seconds: how long that took, before the agent's time began.
        reused: whether an earlier job had brought it.
    """

    at: float
    node: str
    bytes: int
    seconds: float
    reused: bool


@dataclass(frozen=True)
class AgentStarted:
    """Event: the agent's process is there.

    Attributes:
        image: the digest of what it runs in; empty where there is none.
        recipe: what that image and its mlebench-env were built from, by its labels; empty where nobody knows.
        runtime: what it runs in; empty where that is the order's.
        hardware: what it runs on; None in what older versions have written.
        not_held: the limits that nothing holds there, in words.
    """

    at: float
    isolated: bool
    image: str = ""
    hardware: Hardware | None = None
    not_held: str = ""
    recipe: str = ""
    runtime: str = ""


@dataclass(frozen=True)
class SubmissionTaken:
    """Event: a snapshot of the submission lies in the attempt's directory, at `path` relative to it."""

    at: float
    sequence: int
    elapsed_seconds: float
    sha256: str
    bytes: int
    path: str


@dataclass(frozen=True)
class SubmissionRefused:
    """Event: what lies where the submission should be can't be taken.

    Attributes:
        times: how often that has been so; told the first time, the tenth, the hundredth and so on, and at the end.
    """

    at: float
    text: str
    times: int = 1


@dataclass(frozen=True)
class Unsearched:
    """Event: some of what the agent has left could not be opened, or searched for secrets."""

    at: float
    text: str


@dataclass(frozen=True)
class Unmeasured:
    """Event: some of what the agent holds on disk can't be measured, so that it does not count."""

    at: float
    text: str


@dataclass(frozen=True)
class Unremoved:
    """Event: some of what only served the run is left, since it can't be removed."""

    at: float
    text: str


@dataclass(frozen=True)
class CodeNotKept:
    """Event: the code as it was at a submission could not be kept, and why."""

    at: float
    text: str


@dataclass(frozen=True)
class Collected:
    """Event: everything is gathered and exit.json is there."""

    at: float


RunEvent = (
    Staged
    | AgentStarted
    | SubmissionTaken
    | SubmissionRefused
    | ServiceRestarted
    | Unsearched
    | Unmeasured
    | Unremoved
    | CodeNotKept
    | Ending
    | Collected
)

_EVENTS: dict[str, type[RunEvent]] = {
    "staged": Staged,
    "started": AgentStarted,
    "submission": SubmissionTaken,
    "refused": SubmissionRefused,
    "restarted": ServiceRestarted,
    "unsearched": Unsearched,
    "unmeasured": Unmeasured,
    "unremoved": Unremoved,
    "code_not_kept": CodeNotKept,
    "ended": Ending,
    "collected": Collected,
}
_KINDS = {event: kind for kind, event in _EVENTS.items()}


class DamagedRecord(DataProblem):
    """A record is there and can be read, but is none of its kind: trying again does not help."""


Record = TypeVar(
    "Record",
    Order,
    Stop,
    LimitExceeded,
    Started,
    Ending,
    Tidied,
    InboxEntry,
    Traffic,
    RunAllowance,
    AllowanceRequest,
    StagingOrder,
    GivenGpus,
    ImageFile,
)


def write(
    path: Path,
    record: Order
    | Stop
    | LimitExceeded
    | Started
    | Ending
    | Tidied
    | InboxEntry
    | StagingOrder
    | GivenGpus
    | ImageFile,
) -> None:
    """Put a record in its place in one step."""
    files.write_json(path, asdict(record))


def read(path: Path, kind: type[Record]) -> Record:
    """Read a record; fields that this version does not know are left out.

    Raises:
        DamagedRecord: it is no record of this kind.
        DataProblem: it is missing, can't be read, or is of a newer protocol.
    """
    import msgspec  # takes longer than everything else here, and most who import this only need the names

    with files.reading_untrusted(path, max_bytes=_MAX_RECORD_BYTES) as stream:
        content = stream.read()
    try:
        values = msgspec.json.decode(content, type=dict[str, Any])
        version = values.get("version", VERSION)
        if version > VERSION:
            raise DataProblem(f"{path} was written by a newer version", f"its protocol is {version}")
        return msgspec.convert(values, kind)
    except (msgspec.MsgspecError, TypeError) as error:
        raise DamagedRecord(f"{path} is damaged", str(error)) from error


def read_if_there(path: Path, kind: type[Record]) -> Record | None:
    """Read a record that may not have been written yet."""
    return read(path, kind) if path.exists() else None


def heartbeat_from_line(line: dict[str, Any]) -> Heartbeat | None:
    """Read a line of heartbeats; None for one that is none."""
    import msgspec

    try:
        return msgspec.convert(line, Heartbeat)
    except msgspec.ValidationError:
        return None


def event_to_line(event: RunEvent) -> dict[str, Any]:
    """Write an event as a line of events.jsonl."""
    at = event.ended_at if isinstance(event, Ending) else event.at
    return {"kind": _KINDS[type(event)], "at": at, **asdict(event)}


def event_from_line(line: dict[str, Any]) -> RunEvent | None:
    """Read a line; None for a kind or form that this version does not know."""
    import msgspec

    kind = _EVENTS.get(str(line.get("kind")))
    if kind is Ending:  # older versions wrote how the agent ended, but of the times `at` alone
        line = {"started_at": None, "ended_at": line.get("at"), **line}
    if any(isinstance(value, int) and abs(value) > _LARGEST_INTEGER for value in line.values()):
        return None
    try:
        return None if kind is None else msgspec.convert(line, kind)
    except msgspec.ValidationError:
        return None


def attempt_folder(sweep_id: str, competition_id: str, seed: int, attempt: int, token: str) -> str:
    """Name the directory of an attempt, relative to the state directory; no other ever has the same."""
    return f"runs/{sweep_id}/{competition_id}/seed-{seed}/attempt-{attempt}-{token}"


def snapshot_name(sequence: int) -> str:
    """Name a snapshot, relative to the attempt's directory."""
    return f"{SNAPSHOTS}/{sequence}.csv"


def names_in(attempt: Path) -> frozenset[str]:
    """List what lies in an attempt's directory; nothing where that is gone.

    One call to a file system that hosts may share, where a question for each file would be one each.
    """
    try:
        return frozenset(os.listdir(attempt))  # noqa: PTH208 - names are enough
    except FileNotFoundError:
        return frozenset()


def was_asked_to_end(names: frozenset[str]) -> bool:
    """Tell by what lies in its directory whether somebody, or a limit, wants the attempt to end."""
    return STOP in names or LIMIT in names


def read_order(attempt: Path) -> Order:
    """Read the order in an attempt's directory, with the devices that a batch system has given to it by now.

    Raises:
        DamagedRecord, DataProblem: as `read`.
    """
    order, given = read(attempt / ORDER, Order), read_if_there(attempt / GPUS, GivenGpus)
    return order if given is None else replace(order, gpu_uuids=given.uuids)


def prepared_data(attempt: Path, order: Order) -> Path:
    """Find the folder in which the dataset's `public` is: in a job one without answers, on its node's own disk."""
    staged = attempt / DATASET
    return staged.resolve() if staged.exists() else Path(order.prepared_dir)


def make_folders(attempt: Path) -> None:
    """Make the folders of an attempt that are there from its beginning."""
    for name in (SUBMISSION, LOGS, CODE, SNAPSHOTS, OUTPUT):
        (attempt / name).mkdir(parents=True, exist_ok=True)


def needs_runner(state_dir: Path) -> bool:
    """Return whether there is something that a runner has to look after."""
    return has_placed(state_dir) or (state_dir / CONTAINERS).exists()


def has_placed(state_dir: Path) -> bool:
    """Return whether an attempt is left for the runner."""
    return any(inbox(state_dir).glob("[!.]*.json"))


def inbox(state_dir: Path) -> Path:
    """Name the folder where the engine leaves attempts for the runner, in files that are named after them."""
    return state_dir / RUNNER / INBOX
