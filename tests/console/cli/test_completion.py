from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def completed_by_bash(words: str, tmp_path: Path) -> list[str]:
    """Let a real bash load our script and complete a line."""
    program = tmp_path / "mlebench-console"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mlebench_console.console "$@"\n')
    program.chmod(0o755)
    script = f"""
        PATH="{tmp_path}:$PATH"
        eval "$(mlebench-console completion bash)"
        COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _mlebench_console_completion mlebench-console
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert told.stderr == ""
    return told.stdout.split()


def test_bash_completes_commands_and_flags(tmp_path: Path) -> None:
    assert completed_by_bash("mlebench-console sw", tmp_path) == ["sweep"]
    assert "pause" in completed_by_bash("mlebench-console sweep ''", tmp_path)
    assert "--json" in completed_by_bash("mlebench-console grade-sample --j", tmp_path)


@pytest.mark.parametrize(
    ("shell", "mark"), [("zsh", "#compdef mlebench-console"), ("fish", "complete --command")]
)
def test_other_shells_get_a_script_of_their_own(shell: str, mark: str) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "mlebench_console.console", "completion", shell],
        capture_output=True,
        text=True,
        check=True,
    )
    assert mark in told.stdout
    assert told.stderr == ""
