"""A shell in a container finds what an agent would find, and leaves nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from mlebench_console.engine.images import connect
from mlebench_console.engine.runs.shell import SHELLS
from tests.docker.harness import PROBE, DockerHarness
from tests.engine.harness import COMPETITION, SUBMIT, WAIT_FOR_GO, eventually

LOOK = """
id -un
pwd
grep CapBnd /proc/self/status
test -w /home/data || echo read-only
ls /home/data/train.csv
cp /home/data/sample_submission.csv "$SUBMISSION_DIR/submission.csv"
/home/validate_submission.sh "$SUBMISSION_DIR/submission.csv"
echo "$COMPETITION_ID ${API_KEY:-unset} $PLAIN"
ls /sys/class/net
exit 3
"""
TOLD = [
    "nonroot",
    "/home/agent",
    "CapBnd:\t0000000000000000",
    "read-only",
    "/home/data/train.csv",
    '{"result": "The submission is valid."}',
    f"{COMPETITION} unset told",
    "lo",
]


def arguments(docker: DockerHarness, *more: str) -> list[str]:
    places = docker.places
    own = [
        f"--config={places.config_file}",
        f"--data-dir={places.data_dir}",
        f"--state-dir={places.state_dir}",
    ]
    return [sys.executable, "-m", "mlebench_console.console", *own, "runs", "shell", *more]


def nothing_is_left(docker: DockerHarness) -> bool:
    folder = docker.places.state_dir / SHELLS
    return not connect().containers(all=True, filters={"name": "mlebench-shell-"}) and not (
        folder.exists() and list(folder.iterdir())
    )


@pytest.fixture
def agent(docker: DockerHarness) -> str:
    extra = ""
    name = docker.agent("looker", f"{SUBMIT}; {WAIT_FOR_GO}", extra=extra)
    config = docker.agents_dir / PROBE / "config.yaml"
    config.write_text(config.read_text() + "    PLAIN: told\n    API_KEY: ${{ secrets.MODEL_KEY }}\n")
    return name


def test_a_shell_on_a_competition_finds_what_an_agent_would_find(docker: DockerHarness, agent: str) -> None:
    command = arguments(docker, "-c", COMPETITION, "--agent", agent, "--agents-dir", str(docker.agents_dir))
    done = subprocess.run(command, input=LOOK, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == TOLD, done.stderr
    assert done.returncode == 3
    assert nothing_is_left(docker)


def test_a_shell_as_a_run_takes_its_agent_its_competition_and_its_network(
    docker: DockerHarness, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-a-key-of-the-operator")
    docker.start()
    docker.launch(agent)
    (run,) = docker.until_started()
    done = subprocess.run(
        arguments(docker, str(run.id)), input=LOOK, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == TOLD, done.stderr
    assert nothing_is_left(docker)
    docker.go(run)
    docker.ended()
    docker.until_clean()


def test_somebody_who_types_has_a_terminal(docker: DockerHarness) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        arguments(docker, "-c", COMPETITION), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    ) as shell:
        os.close(theirs)
        seen = b""
        eventually(lambda: connect().containers(filters={"name": "mlebench-shell-.*-agent"}))
        os.write(ours, b"test -t 0 && echo a-$((40 + 2))-terminal; exit\n")
        while b"a-42-terminal" not in seen:
            seen += os.read(ours, 4096)
        assert shell.wait() == 0
    os.close(ours)
    assert nothing_is_left(docker)


def test_what_a_killed_one_has_left_the_next_one_removes(docker: DockerHarness) -> None:
    command = arguments(docker, "-c", COMPETITION)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as killed:
        eventually(lambda: connect().containers(filters={"name": "mlebench-shell-.*-agent"}))
        killed.kill()
    assert not nothing_is_left(docker)
    done = subprocess.run(command, input="exit\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert nothing_is_left(docker)
