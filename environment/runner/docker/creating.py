"""Making and starting one planned container, whether or not somebody has begun to before us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from environment.runner.docker.plans import Plan

if TYPE_CHECKING:
    from docker import APIClient

_CONFLICT = 409


def create(client: APIClient, name: str, plan: Plan, labels: dict[str, str]) -> str:
    """Make a container unless it is there, and tell its id.

    Raises:
        docker.errors.DockerException: the daemon refuses or does not answer.
    """
    from docker.errors import APIError

    if plan.has_way_out:
        ensure_way_out(client, plan.network)
    try:
        made = client.create_container(
            plan.image,
            command=None if plan.is_shell else list(plan.command),
            entrypoint=list(plan.command) if plan.is_shell else None,
            stdin_open=plan.is_shell,
            tty=plan.terminal,
            name=name,
            user=plan.user,
            environment=dict(plan.environment),
            labels=labels,
            host_config=host_config(client, plan),
        )
    except APIError as error:
        if error.status_code != _CONFLICT:
            raise
        return str(client.inspect_container(name)["Id"])
    return str(made["Id"])


def host_config(client: APIClient, plan: Plan) -> dict[str, Any]:
    """The daemon's words for a plan."""
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

    # What the agent prints goes to the attempt's own capped log; this keeps what went wrong before that.
    log = LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"})
    settings: dict[str, Any] = {
        "network_mode": plan.network,
        "cap_drop": ["ALL"],
        "cap_add": list(plan.capabilities),
        "security_opt": ["no-new-privileges"],
        "pids_limit": plan.processes,
        "group_add": list(plan.groups),
        "log_config": log,
        "mounts": [Mount(bind.target, str(bind.source), "bind", bind.read_only) for bind in plan.binds],
        "restart_policy": {"Name": "no"},
        "ulimits": [Ulimit(name="core", soft=0, hard=0)],
        "read_only": not plan.writable,
    }
    if plan.privileged:
        settings |= {"privileged": True, "cap_drop": None, "cap_add": None, "security_opt": None}
    if not plan.writable:
        settings["tmpfs"] = {"/tmp": "rw,nosuid,nodev,size=4g"}  # noqa: S108 - the container's own
    if plan.memory_bytes is not None:
        # Equal, so that nothing is swapped: what is over the limit is killed and not slow.
        settings |= {"mem_limit": plan.memory_bytes, "memswap_limit": plan.memory_bytes}
    if plan.shm_bytes is not None:
        settings["shm_size"] = plan.shm_bytes
    if plan.cpus is not None:
        settings["nano_cpus"] = round(plan.cpus * 1e9)
    if plan.runtime:
        settings["runtime"] = plan.runtime
    if plan.gpu_uuids:
        request = DeviceRequest(device_ids=list(plan.gpu_uuids), capabilities=[["gpu"]])
        settings["device_requests"] = [request]
    config: dict[str, Any] = client.create_host_config(**settings)
    return config


def start(client: APIClient, container_id: str) -> None:
    """Start a container that is not running; one that runs already is fine.

    Raises:
        docker.errors.DockerException: the daemon refuses or does not answer.
    """
    client.start(container_id)


def ensure_way_out(client: APIClient, name: str) -> None:
    """Make a state directory's one network with a way out: runs on it can't reach each other.

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
        if error.status_code != _CONFLICT:  # somebody else has made it in between
            raise


def remove_way_out(client: APIClient, name: str) -> None:
    """Remove the network with a way out, unless a container is on it.

    Raises:
        docker.errors.DockerException: the daemon does not answer.
    """
    from docker.errors import APIError

    try:
        client.remove_network(name)
    except APIError as error:
        # Not there, or in use (Podman's error for that is its own): then the last who uses it removes it.
        if not error.is_client_error() and "being used" not in str(error.explanation):
            raise
