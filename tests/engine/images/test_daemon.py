"""The daemon is found where the operator says or where one answers, and its kind decides who builds."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.images.building import find_builder
from mlebench_console.environment.runner.docker import daemon
from mlebench_console.environment.runner.docker.daemon import find_host, is_podman
from mlebench_console.foundation.problems import EnvironmentProblem

TAKES_SECRETS = "#!/bin/sh\necho '  --secret id=...'\n"


@contextmanager
def listening(path: Path) -> Iterator[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        yield f"unix://{path}"


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own in the place of this machine's sockets."""
    own = tuple(place.replace("/", f"{tmp_path}/", 1) for place in daemon.USUAL_SOCKETS if place[0] == "/")
    monkeypatch.setattr(daemon, "USUAL_SOCKETS", (own[0], "{}/docker.sock", "{}/podman/podman.sock", own[1]))
    return tmp_path


def test_docker_is_preferred_and_podman_does_as_well(usual: Path) -> None:
    operator = {"XDG_RUNTIME_DIR": str(usual / "run")}
    with listening(usual / "run" / "podman" / "podman.sock") as podman:
        assert find_host(operator) == podman
        with listening(usual / "var" / "run" / "docker.sock") as docker:
            assert find_host(operator) == docker
        # Its socket is still there, but nobody listens any more.
        assert (usual / "var" / "run" / "docker.sock").exists()
        assert find_host(operator) == podman


def test_what_the_operator_names_is_taken_and_nothing_else(usual: Path) -> None:
    with listening(usual / "var" / "run" / "docker.sock"), listening(usual / "mine.sock") as mine:
        assert find_host({"DOCKER_HOST": mine}) == mine
        with pytest.raises(EnvironmentProblem, match=r"nothing answers at unix:///nowhere\.sock"):
            find_host({"DOCKER_HOST": "unix:///nowhere.sock"})
        assert find_host({"DOCKER_HOST": "ssh://far-away"}) == "ssh://far-away"


def test_where_nobody_answers_the_usual_place_is_named(usual: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"var/run/docker\.sock: No such file") as caught:
        find_host({"XDG_RUNTIME_DIR": str(usual)})
    assert "DOCKER_HOST" in caught.value.next_step


@dataclass(frozen=True)
class Client:
    """As much of a client as is asked."""

    parts: tuple[str, ...]

    def version(self) -> dict[str, Any]:
        return {"Components": [{"Name": name} for name in self.parts]}


def test_podman_is_told_from_docker() -> None:
    assert is_podman(Client(("Podman Engine", "Conmon")))
    assert not is_podman(Client(("Engine", "containerd")))


def test_only_the_daemons_own_builder_builds(tmp_path: Path) -> None:
    program = tmp_path / "podman"
    program.write_text(TAKES_SECRETS)
    program.chmod(0o755)
    operator = {"PATH": f"/nowhere:{tmp_path}"}
    assert find_builder(operator, podman=True) == [str(program), "build"]
    with pytest.raises(EnvironmentProblem, match="no docker with BuildKit"):
        find_builder(operator, podman=False)
    program.write_text("#!/bin/sh\necho an old one\n")
    with pytest.raises(EnvironmentProblem, match="no podman"):
        find_builder(operator, podman=True)
