"""Client of the container daemon, Docker's or Podman's: connect to it, and create planned containers and networks."""

from __future__ import annotations

import json
import os
import shlex
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench_console.environment.container.output import FOR_AGENT
from mlebench_console.environment.runner import layout, protocol
from mlebench_console.environment.runner.docker.plans import READY, ContainerPlan
from mlebench_console.foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient
    from docker.errors import APIError

_TIMEOUT_SECONDS = 120
_UNIX = "unix://"
_HOST = "DOCKER_HOST"
# Docker's, rootless Docker's, rootless Podman's, Podman's; {} is the user's runtime directory.
USUAL_SOCKETS = (
    "/var/run/docker.sock",
    "{}/docker.sock",
    "{}/podman/podman.sock",
    "/run/podman/podman.sock",
)
_PODMAN = "Podman"
_CONFLICT = 409
_NO_QUOTAS = "pquota"
_READY_SECONDS = 120.0
_READY_POLL_SECONDS = 0.05
_REBUILD = (
    "If its image is of an older version, build it again: mlebench-console images build mlebench-grader"
)
_START_IT = "Start Docker, or set DOCKER_HOST to the daemon's socket (Podman's works too)."


def connect(timeout_seconds: int = _TIMEOUT_SECONDS) -> APIClient:
    """Return a client of the daemon that the operator's environment names, or else of the first that answers here.

    Raises:
        EnvironmentProblem: there is none, or access to it is denied.
    """
    import docker

    operator = {**os.environ, _HOST: find_host(os.environ)}
    with daemon_problems():
        client = docker.from_env(timeout=timeout_seconds, environment=operator).api
        client.ping()
        return client


def find_host(operator: Mapping[str, str]) -> str:
    """Return the daemon's address: DOCKER_HOST, else the first socket that answers, Docker's before Podman's.

    Raises:
        EnvironmentProblem: nothing answers.
    """
    asked = operator.get(_HOST)
    runtime = operator.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    candidates = [asked] if asked else [f"{_UNIX}{place.format(runtime)}" for place in USUAL_SOCKETS]
    refusals = []
    for host in candidates:
        refusal = _why_unreachable(host)
        if not refusal:
            return host
        refusals.append(f"{host}: {refusal}")
    why = f"nothing answers at {refusals[0]}"
    raise EnvironmentProblem("Docker can't be used", why, _START_IT)


def is_podman(client: APIClient) -> bool:
    """Return whether the daemon is Podman's, which has its own images and its own builder.

    Raises:
        EnvironmentProblem: it does not answer.
    """
    with daemon_problems():
        parts = client.version().get("Components") or ()
    return any(str(part.get("Name", "")).startswith(_PODMAN) for part in parts)


def _why_unreachable(host: str) -> str:
    """Return why connecting fails; empty where it works. Docker's library would leave its socket open then."""
    if not host.startswith(_UNIX):
        return ""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_TIMEOUT_SECONDS)
        try:
            probe.connect(host.removeprefix(_UNIX))
        except OSError as error:
            return error.strerror or str(error)
    return ""


@contextmanager
def daemon_problems(doing: str = "Docker can't be used") -> Iterator[None]:
    """Turn errors of the daemon, or of the connection to it, into problems.

    Raises:
        EnvironmentProblem: a request failed.
    """
    from docker.errors import APIError, DockerException
    from requests.exceptions import ConnectionError as NotReached
    from requests.exceptions import Timeout

    try:
        yield
    except APIError as error:
        raise EnvironmentProblem(doing, explanation(error)) from error
    except (NotReached, Timeout) as error:
        raise EnvironmentProblem(doing, "the daemon does not answer", _START_IT) from error
    except DockerException as error:
        raise EnvironmentProblem(doing, " ".join(str(error).split())[:300], _START_IT) from error


def explanation(error: APIError) -> str:
    """Return the daemon's error message in one line."""
    return " ".join(str(error.explanation or error).split())


def build_command(names: Iterable[str], agents_dir: str = "") -> str:
    """Return the command that builds images of agents in this folder."""
    is_ours = not agents_dir or Path(agents_dir) == layout.own_files() / "agents"
    where = "" if is_ours else f" --agents-dir {shlex.quote(agents_dir)}"
    return f"mlebench-console images build {' '.join(names)}{where}"


def _environment(plan: ContainerPlan, of_image: Sequence[str]) -> dict[str, str | None]:
    """Return a container's variables; where an agent will run, its own and its image's reach its processes alone.

    The main process is root there, and a loader runs what some variables name. None removes what the image sets.
    """
    if plan.agent_variables is None:
        return dict(plan.environment)
    image = dict(variable.partition("=")[::2] for variable in of_image)
    hidden = {name: value for name, value in image.items() if name not in dict(plan.environment)}
    hidden |= dict(plan.agent_variables)
    # Programs that are started in the container from outside are found by its PATH.
    removed = dict.fromkeys(image.keys() - {"PATH"})
    given = {f"{FOR_AGENT}{name}": value for name, value in hidden.items()}
    return {**removed, **dict(plan.environment), **given}


def _required_image(client: APIClient, plan: ContainerPlan) -> tuple[str, Sequence[str]]:
    """Return the digest of a plan's image, so that this one runs even if its name is reassigned, and its variables.

    Raises:
        EnvironmentProblem: it does not exist, or was built from other files.
    """
    from docker.errors import ImageNotFound

    build = f"Build it: {build_command([plan.image], plan.agents_dir)}"
    try:
        found: dict[str, Any] = client.inspect_image(plan.image)
    except ImageNotFound:
        raise EnvironmentProblem(f"there is no image {plan.image}", "", build) from None
    labels = (found.get("Config") or {}).get("Labels") or {}
    if any(labels.get(name) != value for name, value in plan.image_labels):
        what = f"the image {plan.image} was built from other files than the run's"
        raise EnvironmentProblem(what, "", build)
    return str(found["Id"]), (found.get("Config") or {}).get("Env") or ()


def create(client: APIClient, name: str, plan: ContainerPlan, labels: dict[str, str]) -> str:
    """Create a container unless it exists, and return its id.

    Raises:
        EnvironmentProblem: its image is missing, or was built from other files than its plan says.
        docker.errors.DockerException: the daemon refuses or does not answer.
    """
    from docker.errors import APIError

    if plan.on_outside_network:
        ensure_outside_network(client, plan.network)
    config = host_config(client, plan)
    if plan.disk_bytes is not None and _may_have_quotas(client):
        config["StorageOpt"] = {"size": str(plan.disk_bytes)}
    image, of_image = _required_image(client, plan)
    while True:
        try:
            made = client.create_container(
                image,
                command=list(plan.command),
                entrypoint=list(plan.entrypoint) or None,
                stdin_open=plan.is_shell,
                tty=plan.terminal,
                name=name,
                user=plan.user,
                environment=_environment(plan, of_image),
                labels=labels,
                host_config=config,
            )
        except APIError as error:
            if error.status_code == _CONFLICT:
                return str(client.inspect_container(name)["Id"])
            # Only the daemon knows whether its file system is mounted with project quotas.
            if _NO_QUOTAS not in explanation(error) or config.pop("StorageOpt", None) is None:
                raise
        else:
            return str(made["Id"])


def _may_have_quotas(client: APIClient) -> bool:
    """Return whether the daemon's storage may limit what a container writes, and that alone, without its image."""
    info = client.info()
    return info.get("Driver") == "overlay2" and ["Backing Filesystem", "xfs"] in (
        info.get("DriverStatus") or []
    )


def host_config(client: APIClient, plan: ContainerPlan) -> dict[str, Any]:
    """Translate a plan into the daemon's settings."""
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

    # The agent's output goes to the attempt's own limited log; this one keeps errors from before that.
    log = LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"})
    no_core = Ulimit(name="core", soft=0, hard=0)
    settings: dict[str, Any] = {
        "network_mode": plan.network,
        "cap_drop": ["ALL"],
        "cap_add": list(plan.capabilities),
        "security_opt": ["no-new-privileges"],
        "pids_limit": plan.processes,
        "group_add": list(plan.groups),
        "log_config": log,
        "mounts": [Mount(str(bind.target), str(bind.source), "bind", bind.read_only) for bind in plan.binds],
        "restart_policy": {"Name": "no"},
        "ulimits": [no_core],
        "read_only": not plan.writable,
    }
    if plan.privileged:
        settings |= {"privileged": True, "cap_drop": None, "cap_add": None, "security_opt": None}
    if not plan.writable:
        settings["tmpfs"] = {"/tmp": "rw,nosuid,nodev,size=4g"}  # noqa: S108 - the container's own
    if plan.memory_bytes is not None:
        # Equal, so that nothing is swapped: processes over the limit are killed instead of slowed down.
        settings |= {"mem_limit": plan.memory_bytes, "memswap_limit": plan.memory_bytes}
    if plan.shm_bytes is not None:
        settings["shm_size"] = plan.shm_bytes
    if plan.cpus is not None:
        settings["nano_cpus"] = round(plan.cpus * 1e9)
    if plan.runtime:
        settings["runtime"] = plan.runtime
    for option in plan.options:
        name, _, value = option.partition("=")
        settings[name] = json.loads(value)
        if name == "ulimits":
            settings[name] = [no_core, *(Ulimit(**one) for one in settings[name])]
    if plan.sees_processes_of:
        settings["pid_mode"] = f"container:{plan.sees_processes_of}"
    if plan.gpu_uuids:
        request = DeviceRequest(device_ids=list(plan.gpu_uuids), capabilities=[["gpu"]])
        settings["device_requests"] = [request]
    config: dict[str, Any] = client.create_host_config(**settings)
    return config


def wait_for_validation(client: APIClient, container: str, attempt: Path) -> None:
    """Wait until the validation server of an attempt answers.

    Raises:
        EnvironmentProblem: it does not.
        docker.errors.DockerException: the daemon does not answer.
    """
    give_up = time.monotonic() + _READY_SECONDS
    while not (attempt / protocol.SERVICES / READY).exists():
        if not client.inspect_container(container)["State"]["Running"] or time.monotonic() > give_up:
            log = client.logs(container, tail=3).decode("utf-8", "replace")
            raise EnvironmentProblem("the validation server did not start", " ".join(log.split()), _REBUILD)
        time.sleep(_READY_POLL_SECONDS)


def ensure_outside_network(client: APIClient, name: str) -> None:
    """Create the network with access to the outside, unless it exists; containers on it can't reach each other.

    Raises:
        docker.errors.DockerException: the daemon refuses or does not answer.
    """
    from docker.errors import APIError

    if any(one["Name"] == name for one in client.networks(names=[name])):
        return
    try:
        client.create_network(
            name,
            driver="bridge",
            check_duplicate=True,
            options={"com.docker.network.bridge.enable_icc": "false"},
        )
    except APIError as error:
        if error.status_code != _CONFLICT:  # another process has created it meanwhile
            raise


def remove_outside_network(client: APIClient, name: str) -> None:
    """Remove the network with access to the outside, unless a container is on it.

    Raises:
        docker.errors.DockerException: the daemon does not answer.
    """
    from docker.errors import APIError

    try:
        client.remove_network(name)
    except APIError as error:
        # It does not exist, or is in use (Podman has another error for that): then the last user removes it.
        if not error.is_client_error() and "being used" not in str(error.explanation):
            raise
