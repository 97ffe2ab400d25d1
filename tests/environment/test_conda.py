"""`conda` does in a real shell what agents' start scripts ask of it; what it installs, tests/docker shows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mlebench_console import environment

FOLDER = Path(environment.__path__[0])


@pytest.fixture
def envs(tmp_path: Path) -> Path:
    for name in ("agent", "other env"):
        programs = tmp_path / "envs" / name / "bin"
        programs.mkdir(parents=True)
        tool = programs / "tool"
        tool.write_text(f'#!/bin/sh\necho "tool of {name}: $*"\n')
        tool.chmod(0o755)
    return tmp_path / "envs"


def bash(script: str, envs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment_ = {"PATH": f"{FOLDER}:/usr/bin:/bin", "CONDA_ROOT": str(envs.parent), **variables}
    return subprocess.run(
        ["bash", "-euc", script], env=environment_, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_start_script_idiom_puts_the_environment_on_the_path(envs: Path) -> None:
    told = bash(
        'eval "$(conda shell.bash hook)"; conda activate agent; tool 1 2; echo $CONDA_DEFAULT_ENV', envs
    )
    assert (told.stdout, told.stderr) == ("tool of agent: 1 2\nagent\n", "")


def test_agent_may_lie_elsewhere(envs: Path) -> None:
    there = str(envs / "other env")
    script = 'eval "$(conda shell.bash hook)"; conda activate agent; tool; conda run -n agent tool'
    told = bash(script, envs, MLEBENCH_ENV_AGENT=there)
    assert told.stdout == "tool of other env: \n" * 2


def test_activating_another_environment_replaces_the_first(envs: Path) -> None:
    script = (
        'eval "$(conda shell.bash hook)"; before=$PATH; conda activate agent; conda activate "other env"; tool;'
        'conda deactivate; [ "$PATH" = "$before" ] && echo "${CONDA_PREFIX:-none}"'
    )
    assert bash(script, envs).stdout == "tool of other env: \nnone\n"


@pytest.mark.parametrize(
    "options",
    ["-n agent", "--name agent", "--no-capture-output -n agent", "", "-n agent --", "--live-stream"],
)
def test_run_takes_the_usual_options(envs: Path, options: str) -> None:
    told = bash(f'conda run {options} tool "a  b" -n x', envs)
    assert told.stdout == "tool of agent: a  b -n x\n"


def test_run_gives_the_commands_exit_code(envs: Path) -> None:
    assert bash("conda run -n agent sh -c 'exit 7'", envs).returncode == 7


def test_a_function_in_the_shell_passes_other_commands_on(envs: Path) -> None:
    script = 'eval "$(conda shell.bash hook)"; conda run -n agent tool x; conda clean -afy; conda info --envs'
    told = bash(script, envs)
    assert told.returncode == 0
    assert told.stdout.startswith("tool of agent: x\n# conda environments:\n")
    assert f"agent\t{envs}/agent\n" in told.stdout


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("conda run -n nowhere tool", "no environment 'nowhere'"),
        ("conda run -n", "needs a name"),
        ("conda run", "needs a command"),
        ("conda run --strange tool", "--strange"),
        ("conda install numpy", "use pip"),
        ("conda activate agent", "conda shell.bash hook"),
        ("conda shell.bash other", "knows only 'hook'"),
        ("conda", "known are activate"),
    ],
)
def test_what_it_cannot_do_is_said(envs: Path, command: str, reason: str) -> None:
    told = bash(command, envs)
    assert told.returncode == 1
    assert reason in told.stderr


def test_activating_a_missing_environment_leaves_the_shell_as_it_was(envs: Path) -> None:
    script = (
        'eval "$(conda shell.bash hook)"; before=$PATH; conda activate nowhere || [ "$PATH" = "$before" ]'
    )
    told = bash(script, envs)
    assert told.returncode == 0
    assert "no environment 'nowhere'" in told.stderr
