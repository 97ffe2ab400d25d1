"""An image is known by what it was built from: what is wrong with it is said, and mended as it was built before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docker.errors import ImageNotFound

from mlebench_console.engine.agents import Agent, get_agent
from mlebench_console.engine.images import images_of_runs, recipes_for, require_needed
from mlebench_console.engine.images.building import with_environment
from mlebench_console.engine.requests import BuildImages
from mlebench_console.foundation.problems import EnvironmentProblem


class Daemon:
    """As much of a daemon as tells the labels of images."""

    def __init__(self) -> None:
        self.labels: dict[str, dict[str, str]] = {}

    def inspect_image(self, name: str) -> dict[str, Any]:
        if name not in self.labels:
            raise ImageNotFound(name)
        return {"Id": f"sha256:{name}", "Created": "", "Size": 1, "Config": {"Labels": self.labels[name]}}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.yaml").write_text("mine: {start: mine/start.sh, dockerfile: mine/Dockerfile}")
    (folder / "start.sh").write_text("true\n")
    (folder / "Dockerfile").write_text("FROM mlebench-env\n")
    return get_agent("mine", [tmp_path])


def test_an_image_is_right_only_if_its_folder_and_its_environment_are_those_of_now(agent: Agent) -> None:
    client: Any = Daemon()
    own, grader = images_of_runs(agent)
    right = dict(own.labels)
    assert own.fault(client) == grader.fault(client) == "not built"
    for labels, fault in (
        ({}, "not built by this program"),
        (right, ""),
        (right | {"mlebench.environment": "before"}, "built on an mlebench-env"),
        (right | {"mlebench.recipe": "before"}, f"built from other files than those in {agent.folder}"),
    ):
        client.labels["mine"] = labels
        assert fault in own.fault(client)
        assert bool(own.fault(client)) == bool(fault)
    with pytest.raises(EnvironmentProblem, match="the image mine is built from other files") as caught:
        require_needed(client, own, "/my agents")
    assert caught.value.next_step == "Build it: mlebench-console images build mine --agents-dir '/my agents'"
    client.labels["mine"] = right
    # What this host alone reads takes no other image; everything else does.
    (agent.folder / "config.yaml").write_text("mine: {start: mine/start.sh, dockerfile: mine/Dockerfile}\n")
    assert images_of_runs(agent)[0].fault(client) == ""
    (agent.folder / "start.sh").write_text("false\n")
    assert images_of_runs(agent)[0].fault(client)


def test_a_stale_environment_is_built_again_first_as_it_was_built_before(agent: Agent) -> None:
    client: Any = Daemon()
    recipes, order = recipes_for(["mine"], [agent]), BuildImages(names=("mine",))

    def built() -> list[tuple[str, str, bool]]:
        steps = with_environment(client, recipes, order)
        return [(recipe.name, choices.base_image, choices.heavy) for recipe, choices in steps]

    assert built() == [("mlebench-env", "", False), ("mine", "", False)]
    client.labels["mlebench-env"] = {"mlebench.base-image": "debian:13", "mlebench.heavy": "yes"}
    assert built() == [("mlebench-env", "debian:13", True), ("mine", "", False)]
    (environment,) = recipes_for(["mlebench-env"], [])
    client.labels["mlebench-env"] |= {"mlebench.recipe": environment.version()}
    assert built() == [("mine", "", False)]
