"""The daemon as the runner sees it: one look at all containers of a state directory serves every attempt."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environment.runner.docker import creating
from environment.runner.docker.daemon import connect
from environment.runner.docker.plans import Role
from environment.runner.protocol import Order
from environment.runner.sandbox import Unreachable
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient

    from environment.runner.docker.sandbox import DockerSandbox

LABEL_STATE = "mlebench.state"
LABEL_ATTEMPT = "mlebench.attempt"
LABEL_ROLE = "mlebench.role"
LABEL_KEPT = "mlebench.kept"
_LOOK_SECONDS = 0.5
_AT_ONCE = 4


@dataclass(frozen=True)
class Container:
    """A container as the daemon lists it: `state` is created, running, exited, dead or the like."""

    id: str
    attempt_id: int
    role: Role
    state: str
    image: str
    kept: bool


class DockerHost:
    """Owns the containers of one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._client: APIClient | None = None
        self._seen: dict[tuple[int, Role], Container] = {}
        self._seen_at: float | None = None
        self._starters = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="docker")
        self._way_out_in_use = threading.Lock()

    @property
    def starters(self) -> ThreadPoolExecutor:
        """Threads for what takes the daemon seconds: the other attempts are looked after meanwhile."""
        return self._starters

    def sandbox(self, attempt: Path, order: Order) -> DockerSandbox:
        """One attempt's containers."""
        from environment.runner.docker.sandbox import DockerSandbox

        return DockerSandbox(self, attempt, order)

    def name_of(self, attempt_id: int, role: Role) -> str:
        """The name that a container has, whoever makes it: the daemon gives it only once."""
        return f"{self._prefix}-{attempt_id}-{role}"

    @property
    def way_out(self) -> str:
        """The name of this state directory's one network with a way out."""
        return f"{self._prefix}-open"

    @property
    def _prefix(self) -> str:
        return f"mlebench-{hashlib.sha256(str(self.state_dir).encode()).hexdigest()[:10]}"

    @contextmanager
    def joining_the_way_out(self) -> Iterator[None]:
        """Keep the network while a container that has been made for it is not on it yet."""
        with self._way_out_in_use:
            yield

    def close_the_way_out(self) -> None:
        """Remove the network unless somebody is on it; the next who needs it makes it again.

        Raises:
            Unreachable: the daemon does not answer.
        """
        # Not waited for: whoever joins it now will close it later.
        if self._way_out_in_use.acquire(blocking=False):
            try:
                with self.asking("the network can't be removed") as client:
                    creating.remove_way_out(client, self.way_out)
            finally:
                self._way_out_in_use.release()

    def find(self, attempt_id: int, role: Role) -> Container | None:
        """One container, as of less than a second ago.

        Raises:
            Unreachable: the daemon does not answer.
        """
        now = time.monotonic()
        if self._seen_at is None or now - self._seen_at > _LOOK_SECONDS:
            self._seen = {(one.attempt_id, one.role): one for one in self._all()}
            self._seen_at = now
        return self._seen.get((attempt_id, role))

    def forget(self) -> None:
        """Look again at the next question: something has been changed."""
        self._seen_at = None

    def client(self) -> APIClient:
        """The way to the daemon.

        Raises:
            Unreachable: it does not answer.
        """
        if self._client is None:
            try:
                self._client = connect()
            except EnvironmentProblem as problem:
                raise Unreachable(problem.what, problem.why, problem.next_step) from problem
        return self._client

    @contextmanager
    def asking(self, doing: str) -> Iterator[APIClient]:
        """Use the daemon.

        Raises:
            Unreachable: it does not answer, or not now.
            docker.errors.APIError: it refuses.
        """
        from docker.errors import APIError, DockerException
        from requests.exceptions import RequestException

        try:
            yield self.client()
        except APIError as error:
            if error.is_client_error():
                raise
            raise Unreachable(doing, " ".join(str(error.explanation or error).split())) from error
        except (RequestException, DockerException) as error:
            self._client = None
            raise Unreachable(doing, f"the daemon does not answer ({type(error).__name__})") from error

    def remove(self, container_id: str, *, if_possible: bool = False) -> None:
        """Remove a container with its anonymous volumes, running or not; again is harmless.

        Args:
            container_id: which.
            if_possible: leave it where the daemon says that another one, which is kept, needs it.

        Raises:
            Unreachable: the daemon does not answer.
        """
        from docker.errors import APIError, NotFound

        self.forget()
        with self.asking("a container can't be removed") as client:
            try:
                client.remove_container(container_id, force=True, v=True)
            except NotFound:
                return
            except APIError as error:
                if if_possible:
                    return
                # Somebody else (a runner before us) is at it: whether it is gone, the next look tells.
                raise Unreachable("a container can't be removed", str(error.explanation)) from error

    def _all(self) -> list[Container]:
        with self.asking("the containers can't be listed") as client:
            found: list[dict[str, Any]] = client.containers(
                all=True, filters={"label": f"{LABEL_STATE}={self.state_dir}"}
            )
        return [
            Container(
                one["Id"],
                int(one["Labels"][LABEL_ATTEMPT]),
                Role(one["Labels"][LABEL_ROLE]),
                one["State"],
                one["ImageID"],
                LABEL_KEPT in one["Labels"],
            )
            for one in found
        ]
