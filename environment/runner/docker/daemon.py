"""The way to the container daemon, Docker's or Podman's, and its refusals in words for people."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient

_TIMEOUT_SECONDS = 120
_UNIX = "unix://"
_HOST = "DOCKER_HOST"
# Docker's, rootless Docker's, rootless Podman's, Podman's; {} is the user's own runtime folder.
USUAL_SOCKETS = (
    "/var/run/docker.sock",
    "{}/docker.sock",
    "{}/podman/podman.sock",
    "/run/podman/podman.sock",
)
_PODMAN = "Podman"
_START_IT = "Start Docker, or let DOCKER_HOST name the socket of the daemon (Podman's will do)."


def connect() -> APIClient:
    """A client of the daemon that the operator's environment names, or else of the first that answers here.

    Raises:
        EnvironmentProblem: there is none, or we may not talk to it.
    """
    import docker

    operator = {**os.environ, _HOST: find_host(os.environ)}
    with telling():
        client = docker.from_env(timeout=_TIMEOUT_SECONDS, environment=operator).api
        client.ping()
        return client


def find_host(operator: Mapping[str, str]) -> str:
    """Where the daemon is: DOCKER_HOST, else the first socket that answers, of Docker's and then of Podman's.

    Raises:
        EnvironmentProblem: nobody answers.
    """
    asked = operator.get(_HOST)
    runtime = operator.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    candidates = [asked] if asked else [f"{_UNIX}{place.format(runtime)}" for place in USUAL_SOCKETS]
    refusals = []
    for host in candidates:
        refusal = _knock(host)
        if not refusal:
            return host
        refusals.append(f"{host}: {refusal}")
    why = f"nobody answers at {refusals[0]}"
    raise EnvironmentProblem("Docker can't be used", why, _START_IT)


def is_podman(client: APIClient) -> bool:
    """Whether the daemon is Podman's, which has its own images and its own builder.

    Raises:
        EnvironmentProblem: it does not answer.
    """
    with telling():
        parts = client.version().get("Components") or ()
    return any(str(part.get("Name", "")).startswith(_PODMAN) for part in parts)


def _knock(host: str) -> str:
    """Why nobody listens; empty where somebody does. Docker's library would leave its socket open there."""
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
def telling(doing: str = "Docker can't be used") -> Iterator[None]:
    """Turn what the daemon or the way to it refuses into a problem.

    Raises:
        EnvironmentProblem: something was refused.
    """
    from docker.errors import APIError, DockerException
    from requests.exceptions import ConnectionError as NotReached
    from requests.exceptions import Timeout

    try:
        yield
    except APIError as error:
        raise EnvironmentProblem(doing, " ".join(str(error.explanation or error).split())) from error
    except (NotReached, Timeout) as error:
        raise EnvironmentProblem(doing, "the daemon does not answer", _START_IT) from error
    except DockerException as error:
        raise EnvironmentProblem(doing, " ".join(str(error).split())[:300], _START_IT) from error
