"""What a failing test prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

FAILING = """
import sys

def deep(level):
    if level:
        deep(level - 1)
    raise_it()

def raise_it():
    found = {number: "x" * 50 for number in range(300)}
    assert found == {}

def test_that_fails():
    for line in range(500):
        print("printed", line)
        print("complained", line, file=sys.stderr)
    deep(30)
"""


def test_a_failure_prints_under_forty_lines_and_names_the_file_that_holds_all(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.failures", "-c", "/dev/null"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) < 40, done.stdout
    assert any("assert found == {}" in line for line in lines)
    assert any("printed 499" in line for line in lines)
    (named,) = (line for line in lines if line.startswith("(all of it: "))
    file = tmp_path / named.removeprefix("(all of it: ").removesuffix(")")
    assert "printed 250" in file.read_text()
