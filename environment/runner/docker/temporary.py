"""An attempt's containers without a run: for a shell, and for checking an image."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.docker import daemon
from mlebench_console.environment.runner.docker.plans import ContainerPlan, Role, open_folders, plans
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.conditions import Resources, RunConditions

if TYPE_CHECKING:
    from docker import APIClient


def order_without_run(**facts: Any) -> Order:
    """Return an order with the given facts, and placeholders for what only matters to a run."""
    placeholders: dict[str, Any] = {
        "version": protocol.VERSION,
        "attempt_id": 0,
        "token": "",
        "sweep_id": "",
        "seed": 1,
        "attempt": 1,
        "agent_id": "",
        "agent_folder": "",
        "start": "",
        "arguments": (),
        "variables": (),
        "secret": False,
        "python_prefix": "",
    }
    return Order(**placeholders | facts)


def conditions_without_run(time_limit_seconds: float, **facts: Any) -> RunConditions:
    """Return conditions with the given facts, all processors of the host, and a short grace."""
    usual: dict[str, Any] = {
        "runtime": protocol.DOCKER,
        "grace_seconds": 1.0,
        "resources": Resources(cpus=float(os.cpu_count() or 1)),
    }
    return RunConditions(time_limit_seconds, **usual | facts)


@contextmanager
def temporary_containers(
    client: APIClient, folder: Path, order: Order, name: str, change: Callable[[ContainerPlan], ContainerPlan]
) -> Iterator[str]:
    """Run the services of an agent, create its container without starting it, and remove all of them in the end.

    Args:
        client: of the daemon.
        folder: an empty folder in place of an attempt's directory.
        order: the order from which the containers are planned.
        name: the prefix of the containers' and the network's names.
        change: changes the plan of the agent's container.

    Yields:
        The name of the agent's container.

    Raises:
        EnvironmentProblem: the daemon refuses.
    """
    protocol.make_folders(folder)
    open_folders(folder)
    names = _names(name)
    try:
        with daemon.daemon_problems("the containers can't be started"):
            for plan in plans(folder, order, names, None, _outside_network(name)):
                if plan.role is Role.AGENT:
                    daemon.create(client, names[plan.role], change(plan), {})
                    continue
                container = daemon.create(client, names[plan.role], plan, {})
                client.start(container)
                if plan.role is Role.VALIDATION:
                    daemon.wait_for_validation(client, container, folder)
        yield names[Role.AGENT]
    finally:
        remove_temporary_containers(client, name)


def remove_temporary_containers(client: APIClient, name: str) -> None:
    """Remove the containers with this prefix, even those that a killed process left, and their network.

    Raises:
        EnvironmentProblem: the daemon does not answer.
    """
    from docker.errors import NotFound

    with daemon.daemon_problems("the containers can't be removed"):
        # To Podman the agent depends on its validation server.
        for container in reversed(_names(name).values()):
            try:
                client.remove_container(container, force=True, v=True)
            except NotFound:
                continue
        daemon.remove_outside_network(client, _outside_network(name))


def _names(name: str) -> dict[Role, str]:
    return {role: f"{name}-{role}" for role in Role}


def _outside_network(name: str) -> str:
    return f"{name}-open"
