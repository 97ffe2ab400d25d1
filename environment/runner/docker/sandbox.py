"""The Docker runtime: an attempt's containers, which are identified by their labels."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench_console.environment.container import output, trees
from mlebench_console.environment.container.output import Ending, ServiceRestarted
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.docker import daemon
from mlebench_console.environment.runner.docker.plans import (
    READY,
    ContainerPlan,
    Role,
    joining,
    meter,
    open_folders,
    plans,
)
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.environment.runner.sandbox import AgentStatus, Sandbox, Unreachable
from mlebench_console.foundation import files
from mlebench_console.foundation.backoff import Backoff
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from docker import APIClient

LABEL_STATE = "mlebench.state"
LABEL_ATTEMPT = "mlebench.attempt"
LABEL_ROLE = "mlebench.role"
LABEL_KEPT = "mlebench.kept"
START_TRIES = 3
_POLL_SECONDS = 0.5
_METER_EVERY_SECONDS = 60.0
# The timeout of the loop over all attempts; the threads that start containers wait longer for the daemon.
_LOOP_TIMEOUT_SECONDS = 20
_AWAY_SECONDS = 5.0
_STARTED_AT_ONCE = 4
_STOP_SENT = "stop.sent"
_KILLED = 137
_TERMINATED = 143
_RESTARTS = Backoff(first=1.0, most=60.0)
_SERVICES = {Role.VALIDATION: "the validation server", Role.PROXY: "the proxy to the model hosts"}
_SIGKILL = 9
_ENDED_IN = tuple(reversed(Role))  # to Podman the agent depends on its validation server


@dataclass(frozen=True)
class Container:
    """A container as the daemon lists it: `state` is created, running, exited, dead or the like."""

    id: str
    attempt: str
    role: Role
    state: str
    image: str
    kept: bool

    @property
    def runs(self) -> bool:
        """Whether processes in it may be alive."""
        return self.state in ("running", "paused", "restarting")


class DockerHost:
    """The daemon's containers of one state directory; one listing serves every attempt.

    Attributes:
        starters: threads for calls that take the daemon seconds, so that the other attempts are not delayed.
        joining: held while a container is put on the network with access to the outside, so that the network is not
            removed before the container is on it.
    """

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._clients: dict[bool, APIClient] = {}
        self._away: Unreachable | None = None
        self._ask_again_at = 0.0
        self._seen: dict[tuple[str, Role], Container] = {}
        self._seen_at: float | None = None
        self._changes = 0
        self.starters = ThreadPoolExecutor(_STARTED_AT_ONCE, thread_name_prefix="docker")
        self.joining = threading.Lock()

    def name_of(self, attempt: str, role: Role) -> str:
        """Return the name of a container, always the same, so that the daemon creates only one."""
        return f"{self._prefix}-{attempt}-{role}"

    @property
    def outside_network(self) -> str:
        """The name of this state directory's network with access to the outside."""
        return f"{self._prefix}-open"

    @property
    def _prefix(self) -> str:
        return f"mlebench-{hashlib.sha256(str(self.state_dir).encode()).hexdigest()[:10]}"

    def drop_outside_network(self) -> None:
        """Remove the network unless a container is on it; it is created again when needed.

        Raises:
            Unreachable: the daemon does not answer.
        """
        # Without waiting: an attempt that joins it now will remove it later.
        if self.joining.acquire(blocking=False):
            try:
                with self.asking("the network can't be removed") as client:
                    daemon.remove_outside_network(client, self.outside_network)
            finally:
                self.joining.release()

    def find(self, attempt: str, role: Role) -> Container | None:
        """Return a container as listed less than a second ago; None if there is none.

        Raises:
            Unreachable: the daemon does not answer, or has not answered a moment ago, so that not every attempt waits
                for it in turn.
        """
        return self._listed().get((attempt, role))

    def end(self, attempt: str) -> bool:
        """Remove the containers of an attempt whose agent's container does not run; return whether none is left.

        Raises:
            Unreachable: the daemon does not answer.
        """
        agent = self.find(attempt, Role.AGENT)
        if agent is not None and agent.runs:
            return False
        for role in _ENDED_IN:
            if (container := self.find(attempt, role)) is not None:
                self.remove(container.id)
        return True

    def remove_leftovers(
        self, attempts: Callable[[], Iterable[str]], *, network_too: bool = False
    ) -> list[str]:
        """Remove containers without an attempt, and the network with the last one; return the containers' names.

        There is one when the daemon created it after the runner that requested it had died.

        Args:
            attempts: returns all attempts that may have containers. It is called after the containers are listed: each
                was created for an attempt that existed before, so no new attempt is missing.
            network_too: remove the network even if there was no container to remove.

        Raises:
            Unreachable: the daemon does not answer, or does not remove one of them now.
        """
        listed = list(self._listed().values())
        # Podman keeps the containers on which a kept agent's container depends.
        spared = {*attempts(), *(one.attempt for one in listed if one.kept)}
        leftovers = [one for one in listed if one.attempt not in spared]
        removed: list[str] = []
        problem: Unreachable | None = None
        for one in sorted(leftovers, key=lambda one: _ENDED_IN.index(one.role)):
            try:
                self.remove(one.id)
            except Unreachable as refusal:  # raised after the others are removed
                problem = refusal
            else:
                removed.append(self.name_of(one.attempt, one.role))
        if problem is not None:
            raise problem
        if (removed or network_too) and all(one.kept or one in leftovers for one in listed):
            self.drop_outside_network()
        return removed

    def close(self) -> None:
        """Wait for the containers that are being started: requests to the daemon must not outlive this process."""
        self.starters.shutdown(cancel_futures=True)
        self.forget()

    def forget(self) -> None:
        """Make the next `find` list the containers again, since something has changed."""
        self._changes += 1
        self._seen_at = None

    def client(self, *, patient: bool) -> APIClient:
        """Return a connection to the daemon, one for each value of `patient`.

        Raises:
            Unreachable: it does not answer.
        """
        if patient not in self._clients:
            try:
                self._clients[patient] = (
                    daemon.connect() if patient else daemon.connect(_LOOP_TIMEOUT_SECONDS)
                )
            except EnvironmentProblem as problem:
                raise Unreachable(problem.what, problem.why, problem.next_step) from problem
        return self._clients[patient]

    @contextmanager
    def asking(self, doing: str, *, patient: bool = False) -> Iterator[APIClient]:
        """Yield a client of the daemon, turning its errors into Unreachable.

        Args:
            doing: the message for a failure.
            patient: whether a long timeout is acceptable, because nothing else waits for the answer.

        Raises:
            Unreachable: it does not answer, or not now.
            docker.errors.APIError: it refuses the request.
        """
        from docker.errors import APIError, DockerException
        from requests.exceptions import RequestException

        try:
            yield self.client(patient=patient)
        except APIError as error:
            if error.is_client_error():
                raise
            raise Unreachable(doing, daemon.explanation(error)) from error
        except (RequestException, DockerException) as error:
            self._clients.pop(patient, None)
            raise Unreachable(doing, f"the daemon does not answer ({type(error).__name__})") from error

    def remove(self, container_id: str, *, if_possible: bool = False) -> None:
        """Remove a container with its anonymous volumes, running or not; repeating it is harmless.

        Args:
            container_id: the container.
            if_possible: leave it if the daemon refuses because a kept container depends on it.

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
                # Another runner may be removing it, which the next listing shows.
                raise Unreachable("a container can't be removed", daemon.explanation(error)) from error

    def _listed(self) -> dict[tuple[str, Role], Container]:
        now = time.monotonic()
        if self._away is not None and now < self._ask_again_at:
            raise self._away
        if self._seen_at is None or now - self._seen_at > _POLL_SECONDS:
            changes = self._changes
            try:
                self._seen = {(one.attempt, one.role): one for one in self._all()}
            except Unreachable as problem:
                self._away, self._ask_again_at = problem, time.monotonic() + _AWAY_SECONDS
                raise
            # What another thread started while the daemon listed may be missing: a started agent would look ended.
            self._away, self._seen_at = None, now if changes == self._changes else None
        return self._seen

    def _all(self) -> list[Container]:
        with self.asking("the containers can't be listed") as client:
            found: list[dict[str, Any]] = client.containers(
                all=True, filters={"label": f"{LABEL_STATE}={self.state_dir}"}
            )
        return [
            Container(
                one["Id"],
                one["Labels"][LABEL_ATTEMPT],
                Role(one["Labels"][LABEL_ROLE]),
                one["State"],
                one["ImageID"],
                LABEL_KEPT in one["Labels"],
            )
            for one in found
        ]


class DockerSandbox(Sandbox):
    """An agent's container with its validation server and, if needed, its proxy."""

    def __init__(self, host: DockerHost, attempt: Path, order: Order) -> None:
        self._host = host
        self._attempt = attempt
        self._order = order
        self._starting: Future[None] | None = None
        self._refusals = 0
        self._metered_at: float | None = None
        self._metered: int | None = None
        self._restarting: Future[None] | None = None
        self._restart_at = 0.0
        self._restarts = 0

    def status(self) -> AgentStatus:
        """Return the status of the agent.

        Raises:
            Unreachable: the daemon does not answer.
        """
        if self._starting is not None and not self._starting.done():
            return AgentStatus.STARTING
        agent = self._agent()
        if agent is not None and agent.runs:
            return AgentStatus.ALIVE
        if (self._attempt / protocol.CLAIM).exists() or (agent is not None and agent.state != "created"):
            return AgentStatus.GONE
        return AgentStatus.ABSENT

    def start(self) -> str:
        """Start the containers on another thread; its errors are raised or returned by the next call.

        Raises:
            Unreachable: not possible now; to be tried again.
        """
        if self._starting is not None and (error := self._starting.exception()) is not None:
            self._starting = None
            if isinstance(error, Unreachable):
                raise error
            self._refusals += 1
            text = " ".join(str(error).split())
            if self._refusals == START_TRIES:
                return text
            raise Unreachable(f"try {self._refusals} of {START_TRIES} to start the containers failed", text)
        if not (self._attempt / protocol.OUTPUT).is_dir():
            return "its directory is damaged"
        self._starting = self._host.starters.submit(self._start)
        return ""

    def keep_serving(self) -> None:
        """Restart, on another thread, services of a running agent that have died; errors are raised by a later call.

        Raises:
            Problem: a restart failed; to be tried again.
        """
        if (self._attempt / protocol.ENDING).exists():
            return
        if self._restarting is not None:
            if not self._restarting.done():
                return
            restarting, self._restarting = self._restarting, None
            restarting.result()
        if time.monotonic() < self._restart_at:
            return
        roles = [role for role in (Role.VALIDATION, Role.PROXY) if self._is_used(role)]
        for role in roles:
            container = self._host.find(self._order.token, role)
            if container is None or not container.runs:
                self._restarts += 1
                self._restart_at = time.monotonic() + _RESTARTS.seconds(self._restarts)
                self._restarting = self._host.starters.submit(self._restart, role, container)
                return

    def _is_used(self, role: Role) -> bool:
        return role is not Role.PROXY or self._order.conditions.network == "models"

    def _restart(self, role: Role, dead: Container | None) -> None:
        """Replace a dead container; a validation server joins the network namespace that the agent still has."""
        doing = f"{_SERVICES[role]} can't be started again"
        how, from_outside = self._end_of(dead)
        if dead is not None:
            self._host.remove(dead.id, if_possible=True)
        if role is Role.VALIDATION:
            (self._attempt / protocol.SERVICES / READY).unlink(missing_ok=True)
        names = self._names()
        planned = plans(self._attempt, self._order, names, None, self._host.outside_network)
        plan = next(plan for plan in planned if plan.role is role)
        # A running agent is served by the current image, even if that was rebuilt meanwhile.
        plan = replace(plan, image_labels=())
        if role is Role.VALIDATION:
            plan = joining(plan, names[Role.AGENT])
        try:
            with daemon.daemon_problems(doing), self._host.asking(doing, patient=True) as client:
                with self._host.joining if plan.on_outside_network else nullcontext():
                    container = daemon.create(client, names[role], plan, self._labels(plan))
                    client.start(container)
                if role is Role.VALIDATION:
                    daemon.wait_for_validation(client, container, self._attempt)
        finally:
            self._host.forget()
        more = ", but the network outside is gone" if self._order.conditions.network == "open" else ""
        text = f"{how}; it was started again{more}"
        record = ServiceRestarted(time.time(), _SERVICES[role], text, from_outside)
        output.append(self._attempt / protocol.RESTARTS, record)

    def _end_of(self, dead: Container | None) -> tuple[str, bool]:
        """Return how a container beside the agent has ended, and whether an agent cannot have caused that."""
        from docker.errors import NotFound

        if dead is None:
            return "was removed", True
        with self._host.asking("a container can't be looked at", patient=True) as client:
            try:
                state: dict[str, Any] = client.inspect_container(dead.id)["State"]
            except NotFound:
                return "was removed", True
        if state["OOMKilled"]:
            return "was killed for its memory", False
        code = state["ExitCode"]
        if code in (0, _KILLED, _TERMINATED):
            return "was killed or stopped", True
        return f"ended with {code}", False

    def stop(self) -> None:
        """Have the container's main process end the agent; signalled once, as a second signal would skip the grace."""
        sent = self._attempt / _STOP_SENT
        if not sent.exists():
            self._signal(self._agent(), "SIGTERM")
            sent.touch()

    def kill(self) -> None:
        """Pause the container, so that a fork bomb in it cannot delay its end, and kill it."""
        from docker.errors import APIError

        agent = self._agent()
        if agent is not None and agent.state == "running":
            # A container that can't be paused, as with control groups v1, is killed all the same.
            with suppress(APIError, Unreachable), self._host.asking("a container can't be paused") as client:
                client.pause(agent.id)
        self._signal(agent, "SIGKILL")

    def agent_lives(self) -> bool:
        """Return whether the container's main process has children."""
        root = self.root_process()
        return root is not None and bool(process_tree().get(root))

    def ending(self) -> Ending | None:
        """Return the main process's record of the ending, or else the daemon's, which is lost with the container."""
        written = protocol.read_if_there(self._attempt / protocol.ENDING, Ending)
        asked = protocol.was_asked_to_end(protocol.names_in(self._attempt))
        if written is not None and (written.reason != EndReason.STOPPED or asked):
            return written
        if written is not None:
            problem, code = "its container was stopped from outside", ProblemCode.SANDBOX_LOST
            return replace(written, reason=EndReason.LOST, problem=problem, problem_code=code)
        seen = self._inspect()
        if seen is None or asked:
            return None
        found = self._as_the_daemon_saw_it(seen["State"])
        protocol.write(self._attempt / protocol.ENDING, found)
        return found

    def _as_the_daemon_saw_it(self, state: dict[str, Any]) -> Ending:
        if not (self._attempt / protocol.CLAIM).exists():
            why = " ".join(str(state["Error"]).split()) or f"its main process ended with {state['ExitCode']}"
            problem = f"its container did not start: {why}"
            return Ending.unseen(EndReason.UNSTARTED, problem, ProblemCode.NOT_STARTED)
        if state["OOMKilled"]:
            return replace(Ending.unseen(EndReason.EXITED), signal=_SIGKILL, oom_kills=1)
        how = "killed" if state["ExitCode"] == _KILLED else f"ended with {state['ExitCode']}"
        return Ending.unseen(
            EndReason.LOST, f"its container was {how} from outside", ProblemCode.SANDBOX_LOST
        )

    def end_leftovers(self) -> bool:
        """Kill the containers beside the agent's, which run on after its end."""
        if self._restarting is not None and not self._restarting.done():
            return False
        for beside in self._beside():
            if beside.state == "running":
                self._signal(beside, "SIGKILL")
        return True

    def removing(self) -> Generator[None, None, list[str]]:
        """Remove the containers, the folder that they shared, and after the last run the network."""
        agent = self._agent()
        is_kept = agent is not None and agent.kept
        if agent is not None and not is_kept:
            # First, because in Podman it depends on the container whose network it shares.
            self._keep_output(agent)
            self._host.remove(agent.id)
        for beside in self._beside():
            self._host.remove(beside.id, if_possible=is_kept)
        if self._order.conditions.network != "none":
            self._host.drop_outside_network()
        return (yield from trees.removing_tree(self._attempt / protocol.SERVICES))

    def image(self) -> str:
        """Return the digest of the agent's image."""
        agent = self._agent()
        return agent.image if agent is not None else ""

    def bytes_outside(self) -> int:
        """Return the bytes that the agent has written to its container's own file system."""
        with self._host.asking("a container can't be measured", patient=True) as client:
            name = self._host.name_of(self._order.token, Role.AGENT)
            found: list[dict[str, Any]] = client.containers(size=True, filters={"name": f"^/{name}$"})
        return sum(int(one.get("SizeRw") or 0) for one in found)

    def counts_files(self) -> bool:
        """Return that they are not: of a container's own file system the daemon tells only the bytes."""
        return False

    def bytes_seen_by_root(self) -> int | None:
        """Return the bytes of the agent's folders and deleted files, measured by root in a container now and then."""
        if os.geteuid() == 0 or (
            self._metered_at and time.monotonic() - self._metered_at < _METER_EVERY_SECONDS
        ):
            return self._metered
        from docker.errors import APIError

        self._metered_at = time.monotonic()
        plan = meter(self._attempt, self._order, self._host.name_of(self._order.token, Role.AGENT))
        with self._host.asking("what an agent holds can't be measured", patient=True) as client:
            try:
                container = daemon.create(
                    client, self._host.name_of(self._order.token, Role.METER), plan, self._labels(plan)
                )
                client.start(container)
                client.wait(container)
                printed: bytes = client.logs(container, stderr=False)
                client.remove_container(container, force=True, v=True)
            except APIError:
                printed = b""  # its agent has ended, or its image is of an older version
        last = printed.split()[-1:]
        self._metered = int(last[0]) if last and last[0].isdigit() else None
        return self._metered

    def root_process(self) -> int | None:
        """Return the host's process id of the container's main process; None where it is unknown."""
        seen = self._inspect()
        pid = int(seen["State"]["Pid"]) if seen is not None else 0
        return pid or None

    def _beside(self) -> list[Container]:
        found = (
            self._host.find(self._order.token, role) for role in (Role.VALIDATION, Role.PROXY, Role.METER)
        )
        return [one for one in found if one is not None]

    def _inspect(self) -> dict[str, Any] | None:
        agent = self._agent()
        if agent is None:
            return None
        from docker.errors import NotFound

        with self._host.asking("a container can't be looked at") as client:
            try:
                found: dict[str, Any] = client.inspect_container(agent.id)
            except NotFound:
                return None
        return found

    def _agent(self) -> Container | None:
        return self._host.find(self._order.token, Role.AGENT)

    def _signal(self, container: Container | None, name: str) -> None:
        from docker.errors import APIError

        if container is None:
            return
        self._host.forget()
        with self._host.asking("a container can't be signalled") as client:
            try:
                client.kill(container.id, name)
            except APIError as error:
                # Otherwise it has ended meanwhile, which the next listing shows.
                if error.status_code not in (404, 409):
                    raise

    def _keep_output(self, agent: Container) -> None:
        """Keep the main process's own output, which has errors around the agent."""
        from docker.errors import APIError

        with self._host.asking("a container's output can't be read") as client:
            try:
                text: bytes = client.logs(agent.id, tail=200)
            except APIError:
                return  # it was removed, or never started
        if text:
            files.write_bytes(self._attempt / protocol.SHIM_LOG, text, durable=False)

    def _start(self) -> None:
        """Create and start all missing containers, in order.

        Raises:
            Problem: one can't be started.
        """
        doing = "the containers can't be started"
        launch = secrets.path_of(self._attempt) if self._order.secret else None
        open_folders(self._attempt)
        names = self._names()
        try:
            with daemon.daemon_problems(doing), self._host.asking(doing, patient=True) as client:
                for plan in plans(self._attempt, self._order, names, launch, self._host.outside_network):
                    with self._host.joining if plan.on_outside_network else nullcontext():
                        container = daemon.create(client, names[plan.role], plan, self._labels(plan))
                        self._start_one(client, container)
                    if plan.role is Role.VALIDATION:
                        daemon.wait_for_validation(client, container, self._attempt)
        finally:
            self._host.forget()

    def _names(self) -> dict[Role, str]:
        return {role: self._host.name_of(self._order.token, role) for role in Role}

    def _start_one(self, client: APIClient, container: str) -> None:
        from docker.errors import APIError

        try:
            client.start(container)
        except APIError as error:
            if error.is_client_error() or (self._attempt / protocol.CLAIM).exists():
                raise
            # A daemon that was killed while it started a container can never start it again ("task already
            # exists"), so the next try must create a new one; the claim still lets only one of them run the agent.
            self._host.remove(container)
            raise EnvironmentProblem("a container can't be started", daemon.explanation(error)) from error

    def _labels(self, plan: ContainerPlan) -> dict[str, str]:
        order = self._order
        return {
            LABEL_STATE: str(self._host.state_dir),
            LABEL_ATTEMPT: order.token,
            LABEL_ROLE: plan.role.value,
            "mlebench.sweep": order.sweep_id,
            "mlebench.competition": order.competition_id,
            "mlebench.seed": str(order.seed),
            "mlebench.number": str(order.attempt),
            **({LABEL_KEPT: "yes"} if order.conditions.keep_containers and plan.role is Role.AGENT else {}),
        }
