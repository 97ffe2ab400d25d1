"""A real daemon with real images."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlebench_console.engine.agents import find_agents
from mlebench_console.engine.images import build, connect, find_image, make_base, recipes_for
from mlebench_console.engine.images.building import Recipe
from mlebench_console.engine.places import Places, own_agents_folder
from mlebench_console.engine.requests import BuildImages
from tests.docker.harness import PROBE, DockerHarness
from tests.engine.conftest import empty_state, prepared_data
from tests.machine import BASE_IMAGE

__all__ = ["empty_state", "prepared_data"]  # the engine's fixtures serve here as well

_TIMEOUT_SECONDS = 900
# Read before any test cleans the environment.
CHOICES = BuildImages(base_image=BASE_IMAGE, certificates=os.environ.get("SSL_CERT_FILE", ""))


@contextmanager
def having_the_daemon(*, alone: bool = False) -> Iterator[None]:
    """Have the daemon; alone for tests that kill it or give images other names, beside other processes for the rest."""
    turns, daemon = (Path(f"/tmp/mlebench-test-{name}.lock") for name in ("turns", "daemon"))
    with turns.open("w") as turn, daemon.open("w") as lock:
        fcntl.flock(turn, fcntl.LOCK_EX)  # or who wants it alone would wait for ever while others come and go
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield


def build_images(*names: str) -> None:
    """Build images of ours."""
    client = connect()
    for recipe in recipes_for(names, find_agents([own_agents_folder()]).agents):
        build(client, recipe, CHOICES, lambda _line: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give time to wait for tests of another process that have the daemon alone."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS))


@pytest.fixture(autouse=True)
def of_the_containers_group(docker_daemon: None) -> None:
    """Make every test of this folder one of those that need a Docker daemon."""


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory, docker_daemon: None) -> None:
    """The images that every run needs, and one for agents that tests write on the spot."""
    with having_the_daemon(alone=True):
        if find_image(connect(), BASE_IMAGE) is None:
            make_base(connect(), BASE_IMAGE, lambda _line: None)
        build_images("mlebench-env", "mlebench-grader", "dummy")
        folder = tmp_path_factory.mktemp("probe")
        harness = DockerHarness(Places(folder, folder, folder), folder / "agents")
        harness.agent("probe", "")
        probe = harness.agents_dir / PROBE
        build(connect(), Recipe(PROBE, (probe,), probe / "Dockerfile"), CHOICES, lambda _line: None)


@pytest.fixture
def docker(
    request: pytest.FixtureRequest, tmp_path: Path, prepared_data: Path, empty_state: Path, images: None
) -> Iterator[DockerHarness]:
    """An engine that launches on Docker."""
    made = DockerHarness(
        Places(tmp_path / "config.toml", prepared_data, tmp_path / "state"), tmp_path / "agents", empty_state
    )
    with having_the_daemon(alone=request.node.get_closest_marker("alone") is not None):
        yield made
        made.close()
