"""A container on a competition with a shell in the agent's place, to see what an agent meets; nothing of it is kept."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from competitions.model import Edition
from competitions.registry import is_own
from engine.agents import Agent, required_secrets
from engine.images import GRADER_IMAGE, connect, require_image
from engine.layout import dataset_folder
from environment.runner import protocol
from environment.runner.docker import daemon
from environment.runner.docker.daemon import find_host, is_podman, telling
from environment.runner.docker.plans import AGENT_USER, OUTPUT, READY, Plan, Role, plans
from environment.runner.protocol import Order
from foundation import locks
from foundation.locks import FileLock
from foundation.problems import DataProblem, EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient

    from competitions.model import Competition

SHELLS = "shells"
_LOCK = "shell.lock"
_READY_TRIES = 1200
_READY_LOOK_SECONDS = 0.1
_DAY = 86400.0
_BEGIN = 'cd "$AGENT_DIR"; eval "$(conda shell.bash hook)"; conda activate agent; exec bash'


@dataclass(frozen=True)
class Wish:
    """What a shell is asked for.

    Attributes:
        agent: whose image is used, and whose variables are set but for those that are secrets.
        terminal: whether somebody types; else the shell reads what it is given and ends.
    """

    competition: Competition
    edition: Edition
    data_dir: Path
    agent: Agent
    network: str = "none"
    allowed_hosts: tuple[str, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    terminal: bool = True


@contextmanager
def open_shell(state_dir: Path, wish: Wish, sleep: Callable[[float], None]) -> Iterator[list[str]]:
    """Make the containers, give the command that leads into the shell, and leave nothing of them.

    Raises:
        Problem: the daemon, an image or the dataset is missing, or a container can't be started.
    """
    client = connect()
    for image in (wish.agent.image_name, GRADER_IMAGE):
        require_image(client, image)
    prepared = dataset_folder(wish.competition, wish.data_dir, wish.edition)
    if not prepared.public.is_dir():
        raise DataProblem(
            f"the dataset of {wish.competition.id} is not prepared",
            "",
            f"Prepare it: mlebench-console prepare -c {wish.competition.id}",
        )
    program = _program(os.environ, podman=is_podman(client))
    _sweep_up(client, state_dir)
    folder = state_dir / SHELLS / secrets.token_hex(5)
    folder.mkdir(parents=True)
    lock = FileLock(folder / _LOCK)
    lock.acquire(note=str(os.getpid()))
    with lock:
        try:
            order = _order(wish, str(prepared.prepared))
            with telling("the shell can't be opened"):
                _start_what_is_beside(client, folder, order, sleep)
                shell = _shell(folder, order, terminal=wish.terminal)
                daemon.create(client, _names(folder)[Role.AGENT], shell, {})
            yield [program, "start", "--attach", "--interactive", _names(folder)[Role.AGENT]]
        finally:
            _remove(client, folder)


def _program(operator: Mapping[str, str], *, podman: bool) -> str:
    name = "podman" if podman else "docker"
    found = shutil.which(name, path=operator.get("PATH", os.defpath))
    if found is None:
        raise EnvironmentProblem(
            "no terminal can be attached", f"the program {name} is not on the PATH", "Install it."
        )
    return found


def variables(operator: Mapping[str, str]) -> dict[str, str]:
    """The environment for the command of `open_shell`: it must find the daemon that we have found."""
    return {**operator, "DOCKER_HOST": find_host(operator)}


def _names(folder: Path) -> dict[Role, str]:
    return {role: f"mlebench-shell-{folder.name}-{role}" for role in Role}


def _way_out(folder: Path) -> str:
    return f"mlebench-shell-{folder.name}-open"


def _order(wish: Wish, prepared: str) -> Order:
    hidden = {f"${{{{ secrets.{name} }}}}" for name in required_secrets(wish.agent)}
    return Order(
        version=protocol.VERSION,
        attempt_id=0,
        sweep_id="shell",
        competition_id=wish.competition.id,
        seed=1,
        attempt=1,
        agent_id=wish.agent.id,
        agent_folder=str(wish.agent.folder),
        start=str(wish.agent.start_below_folder),
        arguments=(),
        variables=tuple(
            (name, value)
            for name, value in wish.agent.env_vars
            if not any(secret in value for secret in hidden)
        ),
        secret=False,
        prepared_dir=prepared,
        edition=wish.edition,
        runtime=protocol.DOCKER,
        network=wish.network,
        python_prefix="",
        time_limit_seconds=_DAY,
        grace_seconds=1,
        cpus=float(os.cpu_count() or 1),
        memory_bytes=None,
        snapshot_every_seconds=_DAY,
        image=wish.agent.image_name,
        grader_image=GRADER_IMAGE,
        allowed_hosts=wish.allowed_hosts,
        gpu_uuids=wish.gpu_uuids,
        own_competition=str(wish.competition.folder) if is_own(wish.competition) else "",
    )


def _start_what_is_beside(
    client: APIClient, folder: Path, order: Order, sleep: Callable[[float], None]
) -> None:
    protocol.make_folders(folder)
    for name in (protocol.SUBMISSION, protocol.LOGS, protocol.CODE):
        (folder / name).chmod(0o777)
    (folder / protocol.GRADER).mkdir()
    (folder / protocol.VALIDATIONS).touch()
    for plan in plans(folder, order, _names(folder), None, _way_out(folder)):
        if plan.role is not Role.AGENT:
            daemon.start(client, daemon.create(client, _names(folder)[plan.role], plan, {}))
    for _ in range(_READY_TRIES):
        if (folder / protocol.GRADER / READY).exists():
            return
        sleep(_READY_LOOK_SECONDS)
    raise EnvironmentProblem("the shell can't be opened", "the validation server does not answer")


def _shell(folder: Path, order: Order, *, terminal: bool) -> Plan:
    """The agent's container with a shell in the place of its main process: that one would end it and log it."""
    agent = plans(folder, order, _names(folder), None, _way_out(folder))[-1]
    return replace(
        agent,
        command=("bash", "-c", _BEGIN),
        user=AGENT_USER,
        capabilities=(),
        groups=(),
        binds=tuple(bind for bind in agent.binds if bind.target != OUTPUT),
        is_shell=True,
        terminal=terminal,
    )


def _sweep_up(client: APIClient, state_dir: Path) -> None:
    """Remove what a killed one has left."""
    for folder in (state_dir / SHELLS).glob("*"):
        if not locks.is_held(folder / _LOCK):
            _remove(client, folder)


def _remove(client: APIClient, folder: Path) -> None:
    from docker.errors import NotFound

    with telling("a shell's containers can't be removed"):
        for name in reversed(_names(folder).values()):  # to Podman the agent depends on its grader
            try:
                client.remove_container(name, force=True, v=True)
            except NotFound:
                continue
        daemon.remove_way_out(client, _way_out(folder))
    shutil.rmtree(folder)
