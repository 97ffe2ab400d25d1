"""Starting containers where the daemon makes difficulties; the real daemon has its own tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import requests
from docker.errors import APIError

from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import loop, protocol
from mlebench_console.environment.runner.docker import daemon
from mlebench_console.environment.runner.docker.plans import READY, ContainerPlan, Role
from mlebench_console.environment.runner.docker.sandbox import (
    LABEL_ATTEMPT,
    LABEL_KEPT,
    LABEL_ROLE,
    LABEL_STATE,
    START_TRIES,
    DockerHost,
    DockerSandbox,
)
from mlebench_console.environment.runner.loop import LEFTOVERS_SECONDS, Runner
from mlebench_console.environment.runner.protocol import InboxEntry, Order
from mlebench_console.environment.runner.sandbox import AgentStatus, Unreachable
from tests.clocks import HandClock
from tests.environment.runner.orders import order_with


def refusal(status: int, text: str) -> APIError:
    response = requests.Response()
    response.status_code = status
    return APIError(text, response=response, explanation=text)


@dataclass
class Daemon:
    """As much of a daemon as starting containers asks for; containers in `stuck` can't be started."""

    stuck: set[str] = field(default_factory=set)
    always: str = ""
    made: list[str] = field(default_factory=list)
    there: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    networks_removed: int = 0

    def inspect_image(self, name: str) -> dict[str, Any]:
        return {"Id": f"sha256:{name}", "Config": {"Labels": self.labels}}

    def create_host_config(self, **settings: Any) -> dict[str, Any]:
        return settings

    def create_container(
        self, image: str, *, name: str, labels: dict[str, str], **rest: Any
    ) -> dict[str, Any]:
        if any(one["Name"] == name for one in self.there.values()):
            raise refusal(409, "the name is in use")
        number = f"id-{len(self.made)}"
        self.made.append(number)
        one = {"Id": number, "Name": name, "Labels": labels, "State": "created", "ImageID": image}
        self.there[number] = one
        return one

    def inspect_container(self, name: str) -> dict[str, Any]:
        return next(one for one in self.there.values() if name in (one["Id"], one["Name"]))

    def start(self, number: str) -> None:
        if self.always or number in self.stuck:
            raise refusal(500, self.always or f"task {number}: already exists")
        self.there[number]["State"] = "running"

    def remove_container(self, number: str, **rest: Any) -> None:
        del self.there[number]

    def containers(self, *, filters: dict[str, str], **rest: Any) -> list[dict[str, Any]]:
        name, _, value = filters["label"].partition("=")
        return [one for one in self.there.values() if one["Labels"][name] == value]

    def remove_network(self, _name: str) -> None:
        self.networks_removed += 1

    def add(self, state_dir: Path, attempt: str, role: Role, state: str = "created", **labels: str) -> str:
        """Create a container for whoever asked for it, who may be gone; tell its number."""
        labels = {LABEL_STATE: str(state_dir), LABEL_ATTEMPT: attempt, LABEL_ROLE: role, **labels}
        made = self.create_container("image", name=f"{state_dir}-{attempt}-{role}", labels=labels)
        made["State"] = state
        return str(made["Id"])


class Host(DockerHost):
    def __init__(self, state_dir: Path, daemon: Daemon) -> None:
        super().__init__(state_dir)
        self.daemon = daemon

    def client(self, *, patient: bool) -> Any:
        return self.daemon


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    protocol.make_folders(tmp_path)
    (tmp_path / protocol.SERVICES).mkdir()
    (tmp_path / protocol.SERVICES / READY).touch()
    return tmp_path


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path, Daemon())
    yield made
    made.starters.shutdown()


def order(attempt: Path) -> Order:
    return order_with(
        prepared_dir=str(attempt), runtime=protocol.DOCKER, image="agent", grader_image="grader"
    )


def tried(sandbox: DockerSandbox) -> str:
    """Begin once and wait for what comes of it."""
    told = sandbox.start()
    if sandbox._starting is not None:
        wait([sandbox._starting])
    return told


def test_an_agent_that_starts_while_the_daemon_lists_does_not_look_ended(host: Host, attempt: Path) -> None:
    """The answer of a slow daemon is older than the start; its agent has claimed the attempt already."""
    wanted = order(attempt)
    sandbox = DockerSandbox(host, attempt, wanted)
    before = host.daemon.containers

    def start_meanwhile(**options: Any) -> list[dict[str, Any]]:
        listed = before(**options)
        host.daemon.containers = before  # type: ignore[method-assign]
        tried(sandbox)
        (attempt / protocol.CLAIM).touch()
        return listed

    host.daemon.containers = start_meanwhile  # type: ignore[method-assign]
    assert host.find("another", Role.AGENT) is None
    assert sandbox.status() is AgentStatus.ALIVE


def test_a_container_that_a_killed_daemon_left_half_started_is_made_anew(host: Host, attempt: Path) -> None:
    host.daemon.stuck = {"id-0"}
    wanted = order(attempt)
    sandbox = DockerSandbox(host, attempt, wanted)
    assert tried(sandbox) == ""
    with pytest.raises(Unreachable, match="already exists"):
        tried(sandbox)
    assert sandbox.status() is AgentStatus.ABSENT
    assert tried(sandbox) == ""
    assert sandbox.status() is AgentStatus.ALIVE
    roles = {one["Labels"][LABEL_ROLE]: one["Id"] for one in host.daemon.there.values()}
    assert roles == {"validation": "id-1", "agent": "id-2"}
    assert {one["Labels"][LABEL_ATTEMPT] for one in host.daemon.there.values()} == {wanted.token}


def test_a_container_of_another_state_that_lay_here_is_not_adopted(host: Host, attempt: Path) -> None:
    before = DockerSandbox(host, attempt, replace(order(attempt), token="aaa"))
    assert tried(before) == ""
    assert before.status() is AgentStatus.ALIVE
    after = DockerSandbox(host, attempt, replace(order(attempt), token="bbb"))
    assert after.status() is AgentStatus.ABSENT
    assert tried(after) == ""
    assert len(host.daemon.there) == 4


def test_a_refusal_that_stays_is_told_after_some_tries(host: Host, attempt: Path) -> None:
    host.daemon.always = "could not select device driver with capabilities gpu"
    sandbox = DockerSandbox(host, attempt, order(attempt))
    assert tried(sandbox) == ""
    for _ in range(START_TRIES - 1):
        with pytest.raises(Unreachable, match="device driver"):
            tried(sandbox)
        assert tried(sandbox) == ""
    assert "device driver" in tried(sandbox)
    assert host.daemon.there == {}


def test_an_image_that_was_built_from_other_files_starts_nothing(host: Host, attempt: Path) -> None:
    meant = replace(
        order(attempt), image_labels=(("mlebench.recipe", "new"),), agents_dir="/home/me/my agents"
    )
    host.daemon.labels = {"mlebench.recipe": "old"}
    sandbox = DockerSandbox(host, attempt, meant)
    assert tried(sandbox) == ""
    with pytest.raises(Unreachable) as caught:
        tried(sandbox)
    assert "the image agent was built from other files than the run's" in str(caught.value)
    assert "mlebench-console images build agent --agents-dir '/home/me/my agents'" in str(caught.value)
    assert {one["Labels"][LABEL_ROLE] for one in host.daemon.there.values()} == {"validation"}
    host.daemon.labels = {"mlebench.recipe": "new"}
    assert tried(sandbox) == ""
    assert sandbox.status() is AgentStatus.ALIVE


def test_a_container_whose_agent_may_run_is_not_made_anew(host: Host, attempt: Path) -> None:
    """An orphan of a killed daemon may have the claim: what it is doing must not be removed under its hands."""
    (attempt / protocol.CLAIM).touch()
    host.daemon.stuck = {"id-1"}
    sandbox = DockerSandbox(host, attempt, order(attempt))
    tried(sandbox)
    assert set(host.daemon.there) == {"id-0", "id-1"}
    assert sandbox.status() is AgentStatus.GONE


@dataclass
class Looking:
    """A runner of a state directory with a daemon that was used before."""

    state_dir: Path
    daemon: Daemon
    clock: HandClock
    logged: list[str]

    def __post_init__(self) -> None:
        protocol.inbox(self.state_dir).mkdir(parents=True)
        (self.state_dir / protocol.CONTAINERS).touch()
        self.runner = self.again()

    def again(self) -> Runner:
        return Runner(
            self.state_dir, self.clock, lambda text, error: self.logged.append(f"{text} {error or ''}"), tuple
        )

    def hand_over(self, attempt: str) -> Path:
        """Put an attempt into the inbox that has ended, so that a runner has nothing to do for it."""
        folder = self.state_dir / attempt
        protocol.make_folders(folder)
        protocol.write(folder / protocol.ORDER, order_with(token=attempt, runtime=protocol.DOCKER))
        protocol.write(folder / protocol.EXIT, Ending.unseen("lost"))
        protocol.write(protocol.inbox(self.state_dir) / f"{attempt}.json", InboxEntry(1, attempt))
        return folder


@pytest.fixture
def looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looking]:
    daemon = Daemon()
    monkeypatch.setattr(loop, "DockerHost", lambda state_dir: Host(state_dir, daemon))
    made = Looking(tmp_path / "state", daemon, HandClock(), [])
    yield made
    made.runner.close()


def test_containers_whose_creation_outlived_their_runner_are_removed_and_no_others(looking: Looking) -> None:
    state, daemon = looking.state_dir, looking.daemon
    looking.hand_over("waiting")
    spared = {
        daemon.add(state, "waiting", Role.VALIDATION),
        daemon.add(state.parent / "other", "late", Role.AGENT, "running"),
        daemon.add(state, "kept", Role.AGENT, "exited", **{LABEL_KEPT: "yes"}),
    }
    daemon.add(state, "late", Role.VALIDATION)
    daemon.add(state, "late", Role.AGENT, "running")
    looking.runner.tick()
    assert set(daemon.there) == spared
    assert daemon.networks_removed == 0
    assert [line.partition("late-")[2].split(",")[0] for line in looking.logged] == ["agent", "validation"]

    later = daemon.add(state, "later", Role.METER)
    looking.runner.tick()
    assert later in daemon.there  # not asked for at each look
    looking.clock.moment += LEFTOVERS_SECONDS
    (protocol.inbox(state) / "waiting.json").unlink()
    looking.runner.tick()
    assert len(daemon.there) == 2
    assert daemon.networks_removed == 1


def test_a_container_of_an_attempt_that_begins_while_they_are_listed_is_left_alone(looking: Looking) -> None:
    made: list[str] = []

    class Busy(Daemon):
        def containers(self, **rest: Any) -> list[dict[str, Any]]:
            if not made:
                looking.hand_over("new")
                made.append(self.add(looking.state_dir, "new", Role.VALIDATION))
            return super().containers(**rest)

    busy = Busy()
    host = Host(looking.state_dir, busy)
    assert host.remove_leftovers(looking.runner._serving) == []
    assert list(busy.there) == made


def test_an_inbox_that_is_gone_for_a_moment_costs_no_container(looking: Looking) -> None:
    number = looking.daemon.add(looking.state_dir, "running", Role.AGENT, "running")
    inbox = protocol.inbox(looking.state_dir)
    inbox.rename(inbox.with_name("away"))
    for _ in range(3):
        looking.runner.tick()
        looking.clock.moment += LEFTOVERS_SECONDS
    assert number in looking.daemon.there
    assert len(looking.logged) == 1
    assert str(inbox) in looking.logged[0]


def test_one_that_can_not_be_removed_keeps_no_other_and_is_tried_again(looking: Looking) -> None:
    stuck, other = (looking.daemon.add(looking.state_dir, name, Role.AGENT) for name in ("stuck", "other"))
    refusals = [refusal(500, "device or resource busy")]

    def remove(number: str, **_rest: Any) -> None:
        if number == stuck and refusals:
            raise refusals.pop()
        del looking.daemon.there[number]

    looking.daemon.remove_container = remove  # type: ignore[method-assign]
    looking.runner.tick()
    assert list(looking.daemon.there) == [stuck]
    assert "device or resource busy" in looking.logged[0]
    assert other not in looking.daemon.there
    looking.clock.moment += LEFTOVERS_SECONDS
    looking.runner.tick()
    assert looking.daemon.there == {}


def test_a_state_whose_containers_may_be_left_gets_a_runner_until_none_is(looking: Looking) -> None:
    """As after a kill of engine and runner while the daemon creates a container of an attempt that is over."""
    assert protocol.needs_runner(looking.state_dir)
    looking.runner.tick()
    assert looking.daemon.networks_removed == 0  # it may have been made for what is about to begin
    looking.daemon.add(looking.state_dir, "late", Role.VALIDATION)
    looking.runner.close()
    assert looking.daemon.there == {}
    assert looking.daemon.networks_removed == 1
    assert not protocol.needs_runner(looking.state_dir)
    fresh = looking.again()
    fresh._sandbox_for(looking.state_dir, order_with(runtime=protocol.DOCKER))
    assert protocol.needs_runner(looking.state_dir)
    fresh.close()


def test_a_runner_ends_when_what_it_has_asked_the_daemon_for_is_there(looking: Looking) -> None:
    folder = looking.hand_over("starting")
    (folder / protocol.EXIT).unlink()
    (folder / protocol.SERVICES).mkdir()
    (folder / protocol.SERVICES / READY).touch()
    begun, go_on = threading.Event(), threading.Event()
    start = looking.daemon.start

    def slowly(number: str) -> None:
        begun.set()
        go_on.wait()
        start(number)

    looking.daemon.start = slowly  # type: ignore[method-assign]
    looking.runner.tick()
    begun.wait()
    closing = threading.Thread(target=looking.runner.close)
    closing.start()
    go_on.set()
    closing.join()
    assert {one["State"] for one in looking.daemon.there.values()} == {"running"}
    assert len(looking.daemon.there) == 2


@pytest.mark.parametrize(
    ("filesystem", "has_quotas", "asked"),
    [
        ("xfs", True, [{"size": "1000"}]),
        ("xfs", False, [{"size": "1000"}, None]),
        ("extfs", False, [None]),
    ],
)
def test_a_disk_limit_is_the_storages_own_where_it_can_hold_it(
    filesystem: str, has_quotas: bool, asked: list[dict[str, str] | None]
) -> None:
    told: list[dict[str, str] | None] = []

    class Storage(Daemon):
        def info(self) -> dict[str, Any]:
            return {"Driver": "overlay2", "DriverStatus": [["Backing Filesystem", filesystem]]}

        def create_container(
            self, image: str, *, name: str, labels: dict[str, str], **rest: Any
        ) -> dict[str, Any]:
            told.append(rest["host_config"].get("StorageOpt"))
            if told[-1] and not has_quotas:
                text = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option"
                raise refusal(500, text)
            return super().create_container(image, name=name, labels=labels, **rest)

    client: Any = Storage()
    plan = ContainerPlan(Role.AGENT, "image", (), "0:0", (), (), network="none", disk_bytes=1000)
    assert daemon.create(client, "name", plan, {}) == "id-0"
    assert told == asked
