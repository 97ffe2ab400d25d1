"""What a sweep asks of containers: checked against this host's daemon, or refused where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.agents import Agent
from engine.images import GRADER_IMAGE, connect, require_image
from environment.proxy import parse_rule
from environment.runner import protocol
from environment.runner.docker.daemon import telling
from foundation.problems import EnvironmentProblem, UsageProblem
from state.records import SweepSpec

if TYPE_CHECKING:
    from docker import APIClient

MODELS = "models"


def check(spec: SweepSpec, agent: Agent) -> None:
    """Find what containers for this sweep need.

    Raises:
        EnvironmentProblem: the daemon, an image or a container runtime is missing.
        UsageProblem: the network policy makes no sense.
    """
    check_policy(spec, agent)
    client = connect()
    for image in images_of(agent):
        require_image(client, image)
    check_container_runtime(client, spec)


def images_of(agent: Agent) -> tuple[str, ...]:
    """The images that a run of an agent takes."""
    return (agent.image_name, GRADER_IMAGE)


def check_policy(spec: SweepSpec, agent: Agent) -> None:
    """See that what is asked for makes sense.

    Raises:
        UsageProblem: it does not.
    """
    if agent.dockerfile is None:
        raise UsageProblem(f"agent '{agent.id}' has no Dockerfile", "it can't run in a container")
    if spec.network == MODELS and not spec.allowed_hosts:
        raise UsageProblem("the network 'models' leads nowhere", "", "Name its hosts: --allow HOST")
    if spec.network != MODELS and spec.allowed_hosts:
        raise UsageProblem("hosts are allowed only on the network 'models'", f"it is '{spec.network}'")
    for host in spec.allowed_hosts:
        try:
            parse_rule(host)
        except ValueError as error:
            raise UsageProblem(f"the host {error}") from error


def check_container_runtime(client: APIClient, spec: SweepSpec) -> None:
    """See that the daemon knows the runtime that is asked for.

    Raises:
        EnvironmentProblem: it does not.
    """
    if not spec.container_runtime:
        return
    with telling("Docker's runtimes can't be listed"):
        known = sorted(client.info().get("Runtimes", {}))
    if spec.container_runtime not in known:
        raise EnvironmentProblem(
            f"there is no container runtime '{spec.container_runtime}'",
            f"the daemon knows {', '.join(known)}",
            "Install it, or leave --container-runtime out.",
        )


def refuse(spec: SweepSpec, agent: Agent) -> None:
    """Refuse what only containers have.

    Raises:
        UsageProblem: the sweep asks for some of it.
    """
    if agent.privileged:
        raise UsageProblem(
            f"agent '{agent.id}' asks for a privileged container", "processes can't be given one"
        )
    asked = (
        ("gpus", spec.gpus != 0),
        ("shm_bytes", spec.shm_bytes is not None),
        ("container_runtime", spec.container_runtime != ""),
        ("keep_containers", spec.keep_containers),
        ("the network 'models'", spec.network == MODELS),
    )
    for name, wanted in asked:
        if wanted:
            raise UsageProblem(
                f"processes can't be given {name}", "", f"Launch with the runtime '{protocol.DOCKER}'."
            )
