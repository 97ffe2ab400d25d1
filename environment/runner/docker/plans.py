"""What an attempt's containers are like, decided from its order alone, and the folders that they are given."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from environment.runner import layout, protocol
from environment.runner.layout import Bind
from environment.runner.protocol import Order

_OF_ROOT = "/run/mlebench"  # closed to the agent by the container's main process
OUTPUT = f"{_OF_ROOT}/output"
LAUNCH = f"{_OF_ROOT}/launch.json"
SERVICE = "/run/service"
READY = "ready"
AGENT_USER = "nonroot"
# As in environment/Dockerfile: an image made from that one may have an entry point of its own.
_MAIN_PROCESS = ("/usr/bin/python3", "-I", "/opt/mlebench/main")

# Start scripts of MLE-bench's agents write beside their own folders, into the instructions too.
OPEN_HOME = f"--open={layout.HOME}"

_NO_NETWORK = "none"
_NETWORK_OF = "container:"
_PREPARED = "/run/prepared"
_COMPETITIONS = "/run/competitions"
# Where the registry in the image looks for competitions of the user's own.
_OWN_COMPETITIONS = "MLEBENCH_COMPETITIONS"
_VALIDATIONS = "/run/validations.jsonl"
_RESTARTS = "/run/restarts.jsonl"
_TRAFFIC = "/run/traffic"
# What the main process needs to give the agent a user without any, and to end whatever the agent starts.
_OF_THE_MAIN_PROCESS = ("KILL", "SETGID", "SETPCAP", "SETUID")
_SERVICE_PROCESSES = 256
_SERVICE_MEMORY = 18 << 30  # more than grading a submission may take
_PROXY_MEMORY = 512 << 20
_METER_MEMORY = 1 << 30
_MEASURED = "/run/measured"


class Role(StrEnum):
    """What a container is to its attempt."""

    GRADER = "grader"
    PROXY = "proxy"
    AGENT = "agent"
    METER = "meter"


@dataclass(frozen=True)
class Plan:
    """One container, as the daemon is asked for it.

    Attributes:
        image_labels: that its image has where it was built from the files that are meant.
        agents_dir: where the agent's image is built from, for whoever has to build it.
        network: `none`, the name of a network, or `container:<name>` to share that one's.
        sees_processes_of: the container whose processes it sees; empty for its own.
        capabilities: all that are left to it.
        writable: whether its own file system can be written.
        entrypoint: what takes the place of the image's own; empty to leave that.
        is_shell: whether somebody talks to it.
        terminal: whether that somebody types.
        options: more of the daemon's own settings, each a name and a JSON value.
        disk_bytes: what it may write in its own file system, where the daemon can hold it to that.
    """

    role: Role
    image: str
    command: tuple[str, ...]
    user: str
    environment: tuple[tuple[str, str], ...]
    binds: tuple[Bind, ...]
    network: str
    sees_processes_of: str = ""
    capabilities: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    disk_bytes: int | None = None
    cpus: float | None = None
    processes: int = _SERVICE_PROCESSES
    writable: bool = False
    runtime: str = ""
    options: tuple[str, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    privileged: bool = False
    image_labels: tuple[tuple[str, str], ...] = ()
    agents_dir: str = ""
    entrypoint: tuple[str, ...] = ()
    is_shell: bool = False
    terminal: bool = False

    @property
    def on_outside_network(self) -> bool:
        """Whether it is on the network that leads outside, which must be there before it starts."""
        return self.network != _NO_NETWORK and not self.network.startswith(_NETWORK_OF)


def plans(
    attempt: Path, order: Order, name_of: dict[Role, str], launch: Path | None, outside_network: str
) -> list[Plan]:
    """Plan all containers of an attempt, in the order in which they must start.

    Args:
        attempt: its directory.
        order: what is to be done.
        name_of: what the containers will be called.
        launch: where arguments and variables with secrets in them lie; None where there are none.
        outside_network: the network that leads outside, for those that get it.
    """
    found = [_grader(attempt, order, outside_network)]
    if order.network == "models":
        found.append(_proxy(attempt, order, outside_network))
    return [*found, _agent(attempt, order, name_of[Role.GRADER], launch)]


def joining(plan: Plan, container: str) -> Plan:
    """Plan the same container in the network namespace of another one that runs."""
    return replace(plan, network=f"{_NETWORK_OF}{container}")


def open_folders(attempt: Path) -> None:
    """Let an attempt's containers use its folders."""
    (attempt / protocol.GRADER).mkdir(exist_ok=True)
    (attempt / protocol.PROXY).mkdir(exist_ok=True)
    (attempt / protocol.VALIDATIONS).touch()
    (attempt / protocol.RESTARTS).touch()
    for name in (protocol.SUBMISSION, protocol.LOGS, protocol.CODE):
        # The agent is another user there; the attempt's own folder keeps everybody else out.
        (attempt / name).chmod(0o777)
    attempt.chmod(0o700)
    (attempt / protocol.OUTPUT).chmod(0o770)


def _grader(attempt: Path, order: Order, outside_network: str) -> Plan:
    command = [
        "-m",
        "environment.container.sidecar",
        f"--restarts={_RESTARTS}",
        *(
            [f"--relay={layout.PROXY_PORT}:{SERVICE}/{layout.PROXY_SOCKET}"]
            if order.network == "models"
            else []
        ),
        *([f"--relay={layout.MODEL_PORT}:{SERVICE}/{protocol.GATEWAY_SOCKET}"] if order.providers else []),
        "--",
        f"--port={layout.SANDBOX_PORT}",
        f"--ready={SERVICE}/{READY}",
        f"--competition={order.competition_id}",
        f"--prepared={_PREPARED}",
        f"--edition={order.edition}",
        f"--record={_VALIDATIONS}",
        f"--uploads={SERVICE}/{protocol.UPLOADS}",
        f"--max-bytes={order.submission_limit_bytes}",
    ]
    return Plan(
        Role.GRADER,
        order.grader_image,
        tuple(command),
        f"{os.getuid()}:{os.getgid()}",
        ((_OWN_COMPETITIONS, _COMPETITIONS),) if order.own_competition else (),
        (
            Bind(Path(order.prepared_dir) / "public", f"{_PREPARED}/public", read_only=True),
            Bind(attempt / protocol.VALIDATIONS, _VALIDATIONS),
            Bind(attempt / protocol.RESTARTS, _RESTARTS),
            Bind(attempt / protocol.GRADER, SERVICE),
            *_own_competition(order),
        ),
        network=outside_network if order.network == "open" else _NO_NETWORK,
        image_labels=order.grader_labels,
        memory_bytes=_SERVICE_MEMORY,
    )


def _own_competition(order: Order) -> tuple[Bind, ...]:
    # the image holds the benchmark's competitions only
    own = Path(order.own_competition)
    return (Bind(own, f"{_COMPETITIONS}/{own.name}", read_only=True),) if order.own_competition else ()


def _proxy(attempt: Path, order: Order, outside_network: str) -> Plan:
    """Plan the only way out of a `models` network: a socket in a folder, which nothing can go around."""
    command = [
        *("-m", "environment.container.proxy", f"--socket={SERVICE}/{layout.PROXY_SOCKET}"),
        f"--traffic={_TRAFFIC}/{Path(protocol.TRAFFIC).name}",
    ]
    return Plan(
        Role.PROXY,
        order.grader_image,
        (*command, *layout.proxy_rules(order)),
        f"{os.getuid()}:{os.getgid()}",
        (),
        (Bind(attempt / protocol.GRADER, SERVICE), Bind(attempt / protocol.PROXY, _TRAFFIC)),
        network=outside_network,
        image_labels=order.grader_labels,
        memory_bytes=_PROXY_MEMORY,
    )


def _agent(attempt: Path, order: Order, grader: str, launch: Path | None) -> Plan:
    options = [
        f"--user={AGENT_USER}",
        OPEN_HOME,
        f"--folder={OUTPUT}",
        f"--deadline={order.time_limit_seconds}",
        f"--grace={order.grace_seconds}",
        f"--log-limit={order.log_limit_bytes}",
        *([f"--launch={LAUNCH}"] if launch else []),
        *(["--privileged"] if order.privileged else []),
    ]
    here = layout.sandboxed()
    own = () if launch else order.variables
    environment = layout.variables_in_an_image(
        order, here, own, port=layout.SANDBOX_PORT, model_port=layout.MODEL_PORT
    )
    return Plan(
        Role.AGENT,
        order.image,
        (*options, "--", *layout.start_command(order, here)),
        "0:0",
        tuple(environment.items()),
        (
            Bind(Path(order.prepared_dir) / "public", str(here.data), read_only=True),
            *(_obfuscated_texts(attempt, order) if order.obfuscated else ()),
            Bind(attempt / protocol.SUBMISSION, str(here.submission)),
            Bind(attempt / protocol.LOGS, str(here.logs)),
            Bind(attempt / protocol.CODE, str(here.code)),
            Bind(attempt / protocol.OUTPUT, OUTPUT),
            *((Bind(launch, LAUNCH),) if launch else ()),
        ),
        network=f"{_NETWORK_OF}{grader}",
        image_labels=order.image_labels,
        agents_dir=order.agents_dir,
        entrypoint=_MAIN_PROCESS,
        capabilities=_OF_THE_MAIN_PROCESS,
        groups=(str(os.getgid()),),
        memory_bytes=order.memory_bytes,
        shm_bytes=order.shm_bytes,
        disk_bytes=order.disk_limit_bytes,
        cpus=order.cpus,
        processes=protocol.MOST_PROCESSES,
        writable=True,
        runtime=order.container_runtime,
        options=order.container_options,
        gpu_uuids=order.gpu_uuids,
        privileged=order.privileged,
    )


def meter(attempt: Path, order: Order, agent: str) -> Plan:
    """Plan a container of ours that measures what an agent has closed to all but itself; it can change nothing."""
    folders = (protocol.SUBMISSION, protocol.LOGS, protocol.CODE)
    return Plan(
        Role.METER,
        order.grader_image,
        ("-m", "environment.runner.host.disk", _MEASURED),
        "0:0",
        (),
        tuple(Bind(attempt / name, f"{_MEASURED}/{name}", read_only=True) for name in folders),
        network=_NO_NETWORK,
        sees_processes_of=agent,
        capabilities=("DAC_READ_SEARCH", "SYS_PTRACE"),
        memory_bytes=_METER_MEMORY,
    )


def _obfuscated_texts(attempt: Path, order: Order) -> tuple[Bind, ...]:
    here = layout.sandboxed()
    description = Bind(attempt / protocol.DESCRIPTION, str(here.data / protocol.DESCRIPTION), read_only=True)
    return description, Bind(layout.instructions(order), str(here.instructions), read_only=True)
