"""Images are built, listed and checked by command, and a check finds what a run would have stumbled over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.images import build, check, connect, find_image, recipes_for
from mlebench_console.engine.images.building import Recipe
from mlebench_console.engine.requests import BuildImages
from mlebench_console.environment.runner.docker import daemon
from mlebench_console.environment.runner.docker.plans import ContainerPlan
from mlebench_console.foundation.problems import EnvironmentProblem
from tests.docker.conftest import CHOICES, having_the_daemon
from tests.machine import BASE_IMAGE

IMAGE = "mlebench-test-check"
# As nvidia-smi told it on a machine with two devices.
RECORDED = """#!/bin/sh
echo 'GPU 0: NVIDIA A10 (UUID: GPU-11111111-aaaa)'
echo 'GPU 1: NVIDIA A10 (UUID: GPU-22222222-bbbb)'
"""


@pytest.fixture(autouse=True)
def the_daemon(images: None) -> Iterator[None]:
    with having_the_daemon():
        yield
        client = connect()
        if find_image(client, IMAGE) is not None:
            client.remove_image(IMAGE, force=True)


def command(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "mlebench_console.console", "images", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def image_of(folder: Path, dockerfile: str) -> str:
    """Build an image of an agent that does what the test needs."""
    (folder / "Dockerfile").write_text(f"FROM mlebench-env\nCOPY . /home/agent\n{dockerfile}")
    (folder / "start.sh").write_text("true\n")
    build(connect(), Recipe(IMAGE, (folder,), folder / "Dockerfile"), CHOICES, lambda _line: None)
    return IMAGE


def test_building_tells_its_steps_as_they_come_and_the_digest_at_the_end() -> None:
    done = command("build", "mlebench-env", "dummy", "--base-image", BASE_IMAGE, "--json")
    told: list[dict[str, Any]] = json.loads(done.stdout)
    assert [image["name"] for image in told] == ["mlebench-env", "dummy"]
    steps = done.stderr.splitlines()
    assert steps.index("building mlebench-env") < steps.index("building dummy")
    assert any(line.startswith("#") and "COPY" in line for line in steps)
    listed = {image["name"]: image for image in json.loads(command("list", "--json").stdout)}
    for image in told:
        assert image["digest"].startswith("sha256:")
        assert listed[image["name"]] == image
        assert connect().inspect_image(image["digest"])["Id"] == image["digest"]


def test_a_base_image_that_is_nowhere_is_named_with_the_way_to_one() -> None:
    with pytest.raises(EnvironmentProblem, match="mlebench-env could not be built") as caught:
        (recipe,) = recipes_for(["mlebench-env"], [])
        build(connect(), recipe, BuildImages(base_image="localhost:9/nobody-has-this:1"), lambda _line: None)
    assert "its base image localhost:9/nobody-has-this:1 is not on this machine" in caught.value.why
    assert "sudo mlebench-console images base" in caught.value.next_step


def test_a_build_that_fails_says_where(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=f"{IMAGE} could not be built") as caught:
        image_of(tmp_path, "RUN echo this is wrong && exit 7\n")
    assert "exit code: 7" in caught.value.why
    assert find_image(connect(), IMAGE) is None


def test_an_image_that_is_right_passes_every_check() -> None:
    told = json.loads(command("check", "dummy", "--json").stdout)
    assert {one["name"] for one in told} == {
        "user",
        "rights",
        "folders",
        "instructions",
        "python",
        "grader",
        "start",
        "files",
    }
    assert all(one["passed"] for one in told)


def test_what_is_wrong_with_an_image_is_found_before_a_run_is(tmp_path: Path) -> None:
    broken = image_of(
        tmp_path, "RUN rm -r /home/instructions.txt /opt/conda/envs/agent /home/validate_submission.sh\n"
    )
    found = {one.name: one for one in check(connect(), broken, start="gone.sh")}
    assert {name for name, one in found.items() if not one.passed} == {
        "instructions",
        "python",
        "grader",
        "start",
    }
    assert not connect().containers(all=True, filters={"name": "mlebench-check-"})


def test_a_check_that_fails_is_an_error(tmp_path: Path) -> None:
    agents = tmp_path / "agents"
    (agents / IMAGE).mkdir(parents=True)
    image_of(agents / IMAGE, "RUN rm /home/agent/start.sh\n")
    (agents / IMAGE / "config.yaml").write_text(
        f"broken:\n  start: {IMAGE}/start.sh\n  dockerfile: {IMAGE}/Dockerfile\n"
    )
    done = command("check", "broken", "--agents-dir", str(agents), code=5)
    assert "FAILED" in done.stdout
    assert f"images build {IMAGE}" in done.stderr


@pytest.mark.parametrize(
    ("wanted", "passed", "detail"),
    [
        (("GPU-11111111-aaaa", "GPU-22222222-bbbb"), True, "2 seen"),
        (("GPU-33333333-cccc",), False, "GPU-33333333-cccc is not seen"),
    ],
)
def test_gpus_are_looked_for_inside_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: tuple[str, ...], passed: bool, detail: str
) -> None:
    """No GPU is here: the daemon is not asked for any, and a recording stands in the driver's place."""

    def without_devices(client: Any, plan: ContainerPlan) -> dict[str, Any]:
        return host_config(client, replace(plan, gpu_uuids=()))

    host_config = daemon.host_config
    monkeypatch.setattr(daemon, "host_config", without_devices)
    (tmp_path / "nvidia-smi").write_text(RECORDED)
    image = image_of(tmp_path, "RUN install /home/agent/nvidia-smi /usr/local/bin/nvidia-smi\n")
    gpus = next(one for one in check(connect(), image, gpu_uuids=wanted) if one.name == "gpus")
    assert gpus.passed is passed
    assert detail in gpus.detail


def test_a_host_without_gpus_says_so_before_anything_starts() -> None:
    assert "this host has no 1 GPUs" in command("check", "dummy", "--gpus", "1", code=5).stderr
