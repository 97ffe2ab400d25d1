"""Pipes that close, interrupts, and logs that grow: with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = [sys.executable, "-m", "mlebench_console.console"]


def test_a_reader_that_has_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [*PROGRAM, "competitions", "list"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert ended.returncode == 141
    assert ended.stderr == b""


def follow(state: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, f"--state-dir={state}", "engine", "logs", "-n", "2", "-f"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_followed_log_shows_its_end_then_whole_lines_as_they_come_until_interrupted(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"one\ntwo\nthree\x1b[2J\n")
    process = follow(tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "two\n"
    assert process.stdout.readline() == "three^[[2J\n"
    with log.open("ab") as stream:
        stream.write(b"half of a ")
        stream.flush()
        stream.write(b"line\nanother\n")
    assert process.stdout.readline() == "half of a line\n"
    assert process.stdout.readline() == "another\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == ""
