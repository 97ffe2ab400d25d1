"""What is copied reaches the terminal in its own escape, and nothing else can be in it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from mlebench_console.console.cli import output
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem


def test_text_is_handed_to_the_terminal_and_cannot_end_the_escape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = tmp_path / "tty"
    monkeypatch.setattr(output, "_TERMINAL", terminal)
    output.copy_to_clipboard("63.64 ± 0.00\x07\x1b]0;x\x07")
    content = terminal.read_bytes()
    assert content.startswith(b"\x1b]52;c;")
    assert content.index(b"\x07") == len(content) - 1
    assert base64.b64decode(content[7:-1]).decode() == "63.64 ± 0.00\x07\x1b]0;x\x07"


def test_what_no_clipboard_takes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_TERMINAL", tmp_path)
    with pytest.raises(EnvironmentProblem, match="no terminal"):
        output.copy_to_clipboard("x")
    with pytest.raises(UsageProblem, match="too long"):
        output.copy_to_clipboard("x" * 80_000)
