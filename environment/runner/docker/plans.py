"""Plans of an attempt's containers, derived from its order alone, and the folders mounted into them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from mlebench_console.environment.runner import layout, protocol
from mlebench_console.environment.runner.layout import Bind
from mlebench_console.environment.runner.protocol import Order

_OF_ROOT = Path("/run/mlebench")  # the container's main process closes it to the agent
OUTPUT = _OF_ROOT / "output"
LAUNCH = _OF_ROOT / "launch.json"
SERVICES = Path("/run/services")
READY = "ready"
AGENT_USER = "nonroot"
# As in environment/Dockerfile; an image built on that one may have another entry point.
_MAIN_PROCESS = ("/usr/bin/python3", "-I", "/opt/mlebench/main")

# Start scripts of MLE-bench's agents also write outside their own folders, into the instructions too.
OPEN_HOME = f"--open={layout.HOME}"

_NO_NETWORK = "none"
_NETWORK_OF = "container:"
_PREPARED = Path("/run/prepared")
_COMPETITIONS = Path("/run/competitions")
# Where the registry in the image looks for competitions of the user's own.
_OWN_COMPETITIONS = "MLEBENCH_COMPETITIONS"
_VALIDATIONS = Path("/run/validations.jsonl")
_RESTARTS = Path("/run/restarts.jsonl")
_TRAFFIC = Path("/run/traffic")
# The main process needs these to run the agent as an unprivileged user, and to end all its processes.
_OF_THE_MAIN_PROCESS = ("KILL", "SETGID", "SETPCAP", "SETUID")
_SERVICE_PROCESSES = 256
_SERVICE_MEMORY = 18 << 30  # more than grading a submission may take
_PROXY_MEMORY = 512 << 20
_METER_MEMORY = 1 << 30
_MEASURED = Path("/run/measured")


class Role(StrEnum):
    """The role of a container in its attempt."""

    VALIDATION = "validation"
    PROXY = "proxy"
    AGENT = "agent"
    METER = "meter"


@dataclass(frozen=True)
class ContainerPlan:
    """The configuration of one container.

    Attributes:
        image_labels: the labels of an image that was built from the right files.
        agents_dir: the agents folder to build the agent's image from, for messages.
        network: `none`, the name of a network, or `container:<name>` to share that container's.
        sees_processes_of: the container whose process namespace it shares; empty for its own.
        capabilities: the only ones that it keeps.
        writable: whether its file system is writable.
        entrypoint: replaces that of the image; empty to keep that.
        is_shell: whether it is interactive.
        terminal: whether it has a terminal.
        agent_variables: set by the main process for the agent alone; None where the container runs no agent. Then the
            image's variables do not reach the main process either.
        options: further settings of the daemon, each a name and a JSON value.
        disk_bytes: the limit of its file system's size, where the daemon can enforce one.
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
    agent_variables: tuple[tuple[str, str], ...] | None = None

    @property
    def on_outside_network(self) -> bool:
        """Whether it is on the network with access to the outside, which must exist before it starts."""
        return self.network != _NO_NETWORK and not self.network.startswith(_NETWORK_OF)


def plans(
    attempt: Path, order: Order, name_of: dict[Role, str], launch: Path | None, outside_network: str
) -> list[ContainerPlan]:
    """Return the plans of all containers of an attempt, in the order in which they must start.

    Args:
        attempt: its directory.
        order: what is to be done.
        name_of: the names of the containers.
        launch: the file with arguments and variables that contain secrets; None where there are none.
        outside_network: the network with access to the outside, for those that get it.
    """
    found = [_validation(attempt, order, outside_network)]
    if order.conditions.network == "models":
        found.append(_proxy(attempt, order, outside_network))
    return [*found, _agent(attempt, order, name_of[Role.VALIDATION], launch)]


def joining(plan: ContainerPlan, container: str) -> ContainerPlan:
    """Return the plan of the same container in the network namespace of another, running one."""
    return replace(plan, network=f"{_NETWORK_OF}{container}")


def open_folders(attempt: Path) -> None:
    """Give an attempt's containers access to its folders."""
    (attempt / protocol.SERVICES).mkdir(exist_ok=True)
    (attempt / protocol.PROXY).mkdir(exist_ok=True)
    (attempt / protocol.VALIDATIONS).touch()
    (attempt / protocol.RESTARTS).touch()
    for name in (protocol.SUBMISSION, protocol.LOGS, protocol.CODE):
        # The agent is another user there; the attempt's directory keeps all others out.
        (attempt / name).chmod(0o777)
    attempt.chmod(0o700)
    (attempt / protocol.OUTPUT).chmod(0o770)


def _validation(attempt: Path, order: Order, outside_network: str) -> ContainerPlan:
    command = [
        "-m",
        "mlebench_console.environment.container.services",
        f"--restarts={_RESTARTS}",
        *(
            [f"--relay={layout.PROXY_PORT}:{SERVICES}/{layout.PROXY_SOCKET}"]
            if order.conditions.network == "models"
            else []
        ),
        *([f"--relay={layout.MODEL_PORT}:{SERVICES}/{protocol.GATEWAY_SOCKET}"] if order.providers else []),
        "--",
        f"--port={layout.SANDBOX_PORT}",
        f"--ready={SERVICES}/{READY}",
        f"--competition={order.competition_id}",
        f"--prepared={_PREPARED}",
        f"--edition={order.conditions.edition}",
        f"--record={_VALIDATIONS}",
        f"--uploads={SERVICES}/{protocol.UPLOADS}",
        f"--max-bytes={order.submission_limit_bytes}",
    ]
    return ContainerPlan(
        Role.VALIDATION,
        order.grader_image,
        tuple(command),
        f"{os.getuid()}:{os.getgid()}",
        ((_OWN_COMPETITIONS, str(_COMPETITIONS)),) if order.own_competition else (),
        (
            Bind(Path(order.prepared_dir) / "public", _PREPARED / "public", read_only=True),
            Bind(attempt / protocol.VALIDATIONS, _VALIDATIONS),
            Bind(attempt / protocol.RESTARTS, _RESTARTS),
            Bind(attempt / protocol.SERVICES, SERVICES),
            *_own_competition(order),
        ),
        network=outside_network if order.conditions.network == "open" else _NO_NETWORK,
        image_labels=order.grader_labels,
        memory_bytes=_SERVICE_MEMORY,
    )


def _own_competition(order: Order) -> tuple[Bind, ...]:
    # the image holds the benchmark's competitions only
    own = Path(order.own_competition)
    return (Bind(own, _COMPETITIONS / own.name, read_only=True),) if order.own_competition else ()


def _proxy(attempt: Path, order: Order, outside_network: str) -> ContainerPlan:
    """Return the plan of the proxy, which is reached by a socket in a folder and is the only way out."""
    command = [
        *("-m", "mlebench_console.environment.container.proxy", f"--socket={SERVICES}/{layout.PROXY_SOCKET}"),
        f"--traffic={_TRAFFIC}/{Path(protocol.TRAFFIC).name}",
    ]
    return ContainerPlan(
        Role.PROXY,
        order.grader_image,
        (*command, *layout.proxy_rules(order)),
        f"{os.getuid()}:{os.getgid()}",
        (),
        (Bind(attempt / protocol.SERVICES, SERVICES), Bind(attempt / protocol.PROXY, _TRAFFIC)),
        network=outside_network,
        image_labels=order.grader_labels,
        memory_bytes=_PROXY_MEMORY,
    )


def _agent(attempt: Path, order: Order, validation: str, launch: Path | None) -> ContainerPlan:
    options = [
        f"--user={AGENT_USER}",
        OPEN_HOME,
        f"--folder={OUTPUT}",
        f"--deadline={order.conditions.time_limit_seconds}",
        f"--grace={order.conditions.grace_seconds}",
        f"--log-limit={order.log_limit_bytes}",
        *([f"--launch={LAUNCH}"] if launch else []),
        *(["--privileged"] if order.privileged else []),
    ]
    here = layout.sandboxed()
    given, usual = (
        layout.variables_in_an_image(order, here, own, port=layout.SANDBOX_PORT, model_port=layout.MODEL_PORT)
        for own in (() if launch else order.variables, ())
    )
    layout.require_possible(given)
    return ContainerPlan(
        Role.AGENT,
        order.image,
        (*options, "--", *layout.start_command(order, here)),
        "0:0",
        tuple(usual.items()),
        (
            *layout.binds(attempt, order, here),
            Bind(attempt / protocol.OUTPUT, OUTPUT),
            *((Bind(launch, LAUNCH),) if launch else ()),
        ),
        network=f"{_NETWORK_OF}{validation}",
        image_labels=order.image_labels,
        agents_dir=order.agents_dir,
        entrypoint=_MAIN_PROCESS,
        capabilities=_OF_THE_MAIN_PROCESS,
        groups=(str(os.getgid()),),
        memory_bytes=order.conditions.resources.memory_bytes,
        shm_bytes=order.conditions.resources.shm_bytes,
        disk_bytes=order.conditions.disk_limit_bytes,
        cpus=order.conditions.resources.cpus,
        processes=protocol.MOST_PROCESSES,
        writable=True,
        runtime=order.conditions.container_runtime,
        options=order.conditions.container_options,
        gpu_uuids=order.gpu_uuids,
        privileged=order.privileged,
        agent_variables=tuple(sorted(given.items() - usual.items())),
    )


def meter(attempt: Path, order: Order, agent: str) -> ContainerPlan:
    """Return the plan of a container that measures files to which an agent denies access; it can change nothing."""
    folders = (protocol.SUBMISSION, protocol.LOGS, protocol.CODE)
    return ContainerPlan(
        Role.METER,
        order.grader_image,
        ("-m", "mlebench_console.environment.runner.host.disk", str(_MEASURED)),
        "0:0",
        (),
        tuple(Bind(attempt / name, _MEASURED / name, read_only=True) for name in folders),
        network=_NO_NETWORK,
        sees_processes_of=agent,
        capabilities=("DAC_READ_SEARCH", "SYS_PTRACE"),
        memory_bytes=_METER_MEMORY,
    )
