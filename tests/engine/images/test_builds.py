"""The engine builds images in a process of its own, one build at a time; whoever asked learns how it ended."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.images import BuildStatus, ImageBuilds, build_status, follow_build
from mlebench_console.engine.requests import BuildImages, StopBuild
from mlebench_console.foundation.locks import is_held
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[ImageBuilds]:
    made = ImageBuilds(tmp_path)
    yield made
    while is_held(tmp_path / "image-build" / "lock"):
        time.sleep(0.05)
    made.step()


def test_an_image_that_nobody_knows_is_refused_as_ever(builds: ImageBuilds, tmp_path: Path) -> None:
    builds.build(BuildImages(names=("no-such",)), "me")
    with pytest.raises(UsageProblem, match="there is no image 'no-such'"):
        follow_build(tmp_path, lambda _line: None)


def test_a_daemon_that_is_not_there_fails_the_build(
    builds: ImageBuilds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    builds.build(BuildImages(names=("dummy",)), "me")
    with pytest.raises(EnvironmentProblem, match=r"nothing answers at unix:///nowhere\.sock"):
        follow_build(tmp_path, lambda _line: None)
    found = build_status(tmp_path)  # by whoever looks later
    assert (found.is_running, found.names) == (False, ("dummy",))
    assert "nothing answers at" in str(found.problem)


def test_where_nothing_was_ever_built_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert build_status(tmp_path) == BuildStatus()


def test_there_is_one_build_at_a_time_which_another_engine_can_stop(
    builds: ImageBuilds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'silent.sock'}")
        builds.build(BuildImages(), "me")
        connection, _ = silent.accept()
        assert build_status(tmp_path).is_running
        with connection, pytest.raises(UsageProblem, match="being built already"):
            builds.build(BuildImages(), "me")
        ImageBuilds(tmp_path).stop(StopBuild(), "me")
        with pytest.raises(EnvironmentProblem, match="the build was stopped"):
            follow_build(tmp_path, lambda _line: None)
    with pytest.raises(UsageProblem, match="no image is being built"):
        builds.stop(StopBuild(), "me")
