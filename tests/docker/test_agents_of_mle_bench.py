"""Agents that were written for MLE-bench's image build on ours and run in it; an image of other files never runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.agents import find_agents
from mlebench_console.engine.images import build, connect, find_image, recipes_for
from mlebench_console.environment.runner.protocol import LOGS
from mlebench_console.foundation.problems import EnvironmentProblem, Problem
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from tests.docker import mle_bench_agents
from tests.docker.conftest import CHOICES
from tests.docker.harness import PROBE, DockerHarness
from tests.engine.harness import SUBMIT, WAIT_FOR_GO, eventually
from tests.machine import BASE_IMAGE

TOLD = {
    "mle-dummy": [],
    "mle-aide": ["args: agent.steps=500", "You have 1hrs on a CPU.", "/usr/bin/7z", "/usr/bin/tmux"],
    "mle-mlagentbench": ["You have 1hrs on a CPU.", "the bench runs"],
    "mle-opendevin": ["the tool runs"],
}


def build_from(agents: Path, name: str) -> None:
    (recipe,) = recipes_for([name], find_agents([agents]).agents)
    build(connect(), recipe, CHOICES, lambda _line: None)


@pytest.fixture
def written(docker: DockerHarness) -> Iterator[list[str]]:
    names = mle_bench_agents.write(docker.agents_dir)
    yield names
    client = connect()
    for name in names:
        if find_image(client, name) is not None:
            client.remove_image(name, force=True)


@pytest.mark.timeout(900)
def test_agents_of_mle_bench_build_and_run_as_they_are(docker: DockerHarness, written: list[str]) -> None:
    for name in written:
        build_from(docker.agents_dir, name)
    docker.start()
    for name in written:
        docker.launch(name)
    runs = {run.sweep_id.rpartition("-")[0]: run for run in docker.ended()}
    for name in written:
        log = docker.log(runs[name])
        assert runs[name].outcome is Outcome.BELOW_MEDIAN, log
        for line in TOLD[name]:
            assert line in log
    assert (docker.folder(runs["mle-dummy"]) / LOGS / "run.log").is_file()
    docker.until_clean()


def test_a_step_that_needs_a_host_out_of_reach_is_named_with_it(
    docker: DockerHarness, written: list[str]
) -> None:
    """The host stands for GitHub, wherever this test is run."""
    folder = docker.agents_dir / "mle-dummy"
    (folder / "requirements.txt").write_text("git+https://github.invalid/somebody/aideml@v1\n")
    with pytest.raises(EnvironmentProblem, match="mle-dummy could not be built") as caught:
        build_from(docker.agents_dir, "mle-dummy")
    assert "its step 'RUN conda run -n agent pip install" in caught.value.why
    assert "needs github.invalid, which could not be reached" in caught.value.why


@pytest.mark.alone
def test_an_image_of_other_files_is_refused_at_launch_and_at_start(docker: DockerHarness) -> None:
    client = connect()
    docker.agent("prober", f"{WAIT_FOR_GO}; {SUBMIT}")
    docker.start()
    start = docker.agents_dir / PROBE / "start.sh"
    as_built = start.read_text()
    start.write_text("echo other\n")
    with pytest.raises(Problem, match=f"the image {PROBE} is built from other files") as caught:
        docker.launch("prober")
    build_it = f"mlebench-console images build {PROBE} --agents-dir {docker.agents_dir}"
    assert build_it in str(caught.value)
    start.write_text(as_built)
    docker.launch("prober", seeds=2, concurrency=1)
    (first,) = eventually(lambda: [run for run in docker.runs() if run.state is RunState.RUNNING])
    digest = client.inspect_image(PROBE)["Id"]
    try:
        client.tag(BASE_IMAGE, PROBE)
        with pytest.raises(Problem, match=f"the image {PROBE} is not built by this program"):
            docker.launch("prober")
        client.tag("dummy", PROBE)
        docker.go(first)
        first, second = sorted(docker.ended(), key=lambda run: run.seed)
    finally:
        client.tag(digest, PROBE)
    assert first.outcome is Outcome.BELOW_MEDIAN
    assert second.failure_class is FailureClass.INFRASTRUCTURE
    assert f"the image {PROBE} was built from other files than the run's" in second.failure_text
    docker.until_clean()
