"""The way to the container daemon, Docker's or Podman's, and its refusals in words for people."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient

_TIMEOUT_SECONDS = 120
_UNIX = "unix://"
_USUAL_SOCKET = "unix:///var/run/docker.sock"
_START_IT = "Start Docker, or let DOCKER_HOST name the socket of the daemon (Podman's will do)."


def connect() -> APIClient:
    """A client of the daemon that the operator's environment names.

    Raises:
        EnvironmentProblem: there is none, or we may not talk to it.
    """
    import docker

    _knock(os.environ.get("DOCKER_HOST") or _USUAL_SOCKET)
    with telling():
        client = docker.from_env(timeout=_TIMEOUT_SECONDS).api
        client.ping()
        return client


def _knock(host: str) -> None:
    """See that somebody listens; where nobody does, Docker's library would leave its socket open."""
    if host.startswith(_UNIX):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_TIMEOUT_SECONDS)
            try:
                probe.connect(host.removeprefix(_UNIX))
            except OSError as error:
                why = f"nobody answers at {host}: {error.strerror or error}"
                raise EnvironmentProblem("Docker can't be used", why, _START_IT) from error


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
