"""Open a container like an agent's, with a shell in the agent's place; nothing of it is kept."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlebench_console.competitions.model import edition_named
from mlebench_console.competitions.registry import is_own
from mlebench_console.engine.agents import Agent, required_secrets
from mlebench_console.engine.images import GRADER_IMAGE, connect, images_of_runs, require_needed
from mlebench_console.engine.layout import dataset_folder, unprepared
from mlebench_console.environment.runner.docker.daemon import find_host, is_podman
from mlebench_console.environment.runner.docker.plans import AGENT_USER, OPEN_HOME, OUTPUT, ContainerPlan
from mlebench_console.environment.runner.docker.temporary import (
    conditions_without_run,
    order_without_run,
    remove_temporary_containers,
    temporary_containers,
)
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import locks
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.state.records import SweepSpec

if TYPE_CHECKING:
    from docker import APIClient

    from mlebench_console.competitions.model import Competition

SHELLS = "shells"
_LOCK = "shell.lock"
_DAY = 86400.0
_BEGIN = 'cd "$AGENT_DIR"; eval "$(conda shell.bash hook)"; conda activate agent; exec bash'


@contextmanager
def open_shell(
    state_dir: Path, competition: Competition, spec: SweepSpec, agent: Agent, *, terminal: bool
) -> Iterator[list[str]]:
    """Create the containers, yield the command that attaches to the shell, and remove the containers at the end.

    Args:
        state_dir: for the containers' folders while the shell is open.
        competition: its dataset is mounted.
        spec: gives edition, data directory and network.
        agent: its image is used, and its variables are set, except secrets.
        terminal: whether the shell is interactive; otherwise it reads its input and ends.

    Raises:
        Problem: the daemon, an image or the dataset is missing, or a container can't be started.
    """
    client = connect()
    for image in images_of_runs(agent):
        require_needed(client, image, spec.agents_dir)
    prepared = dataset_folder(competition, spec.data_dir, edition_named(spec.conditions.edition))
    if not prepared.public.is_dir():
        raise unprepared(competition.id)
    program = _program(os.environ, podman=is_podman(client))
    _remove_leftovers(client, state_dir)
    folder = state_dir / SHELLS / secrets.token_hex(5)
    folder.mkdir(parents=True)
    lock = FileLock(folder / _LOCK)
    lock.acquire(note=str(os.getpid()))
    order = _order(competition, spec, agent, str(prepared.prepared))
    with lock:
        try:
            with temporary_containers(
                client, folder, order, _name(folder), lambda plan: _shell(plan, terminal=terminal)
            ) as container:
                yield [program, "start", "--attach", "--interactive", container]
        finally:
            shutil.rmtree(folder)


def variables(operator: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the command of `open_shell`, with the same Docker host as ours."""
    return {**operator, "DOCKER_HOST": find_host(operator)}


def _program(operator: Mapping[str, str], *, podman: bool) -> str:
    name = "podman" if podman else "docker"
    found = shutil.which(name, path=operator.get("PATH", os.defpath))
    if found is None:
        raise EnvironmentProblem(
            "no terminal can be attached", f"the program {name} is not on the PATH", "Install it."
        )
    return found


def _name(folder: Path) -> str:
    return f"mlebench-shell-{folder.name}"


def _order(competition: Competition, spec: SweepSpec, agent: Agent, prepared: str) -> Order:
    hidden = {f"${{{{ secrets.{name} }}}}" for name in required_secrets(agent)}
    return order_without_run(
        competition_id=competition.id,
        agent_folder=str(agent.folder),
        start=str(agent.start_below_folder),
        variables=tuple(
            (name, value) for name, value in agent.env_vars if not any(secret in value for secret in hidden)
        ),
        prepared_dir=prepared,
        conditions=conditions_without_run(
            _DAY,
            edition=spec.conditions.edition,
            network=spec.conditions.network,
            allowed_hosts=spec.conditions.allowed_hosts,
        ),
        image=agent.image_name,
        grader_image=GRADER_IMAGE,
        own_competition=str(competition.folder) if is_own(competition) else "",
    )


def _shell(agent: ContainerPlan, *, terminal: bool) -> ContainerPlan:
    """ContainerPlan the agent's container with a shell in the agent's place, without a deadline and without a log."""
    return replace(
        agent,
        command=(f"--user={AGENT_USER}", OPEN_HOME, "--shell", "--", "bash", "-c", _BEGIN),
        binds=tuple(bind for bind in agent.binds if bind.target != OUTPUT),
        is_shell=True,
        terminal=terminal,
    )


def _remove_leftovers(client: APIClient, state_dir: Path) -> None:
    """Remove the containers and folders of shells whose process was killed."""
    for folder in (state_dir / SHELLS).glob("*"):
        if not locks.is_held(folder / _LOCK):
            remove_temporary_containers(client, _name(folder))
            shutil.rmtree(folder)
