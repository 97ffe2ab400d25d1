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


OF_MANY_KINDS = """
import subprocess, sys, time
import pytest

def test_operands():
    assert {number: "x" * 300 for number in range(3000)} == {}

def test_lines():
    assert "x" * 100_000 == "y" * 100_000

def test_program():
    program = "for line in range(400): print('line', line)\\nraise SystemExit('the reason')"
    done = subprocess.run([sys.executable, "-c", program], stdout=-1, stderr=-2, text=True)
    assert done.returncode == 0, done.stdout

def test_screen():
    raise AssertionError("waited in vain\\n" + "\\n".join(f"row {row}" for row in range(24)))

@pytest.fixture
def broken():
    raise ValueError("\\n".join(f"detail {line}" for line in range(200)))

def test_fixture(broken):
    pass

@pytest.mark.timeout(0.5)
def test_timeout():
    time.sleep(60)

def test_recursion():
    def deeper(level):
        return deeper(level + 1)
    deeper(0)
"""
# What says most of each.
SAID = {
    "test_operands": ["assert {0: "],
    "test_lines": ["characters ..."],
    "test_program": ["line 0", "the reason", "assert 1 == 0"],
    "test_screen": ["waited in vain", *(f"row {row}" for row in range(24))],
    "setup of test_fixture": ["in broken", "ValueError: detail 0", "detail 199"],
    "test_timeout": ["time.sleep(60)", "Timeout"],
    "test_recursion": ["RecursionError"],
    "collecting test_wrong.py": ["import nothing_such", "No module named 'nothing_such'"],
}
MOST_LINES_OF_ONE = 31  # the rest is what pytest prints once for all
WIDEST = 360


def test_what_to_look_at_is_printed_of_each_kind_of_failure(tmp_path: Path) -> None:
    (tmp_path / "test_kinds.py").write_text(OF_MANY_KINDS)
    (tmp_path / "test_wrong.py").write_text("import nothing_such\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.failures", "-c", "/dev/null", "--tb=short"]
    done = subprocess.run(
        [*command, "--continue-on-collection-errors", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    blocks: dict[str, list[str]] = {}
    for line in done.stdout.partition("= short test summary")[0].splitlines():
        if line.startswith("___"):
            blocks[line.strip("_ ").removeprefix("ERROR at ").removeprefix("ERROR ")] = block = []
        elif blocks:
            block.append(line)
    assert set(blocks) == set(SAID)
    for name, block in blocks.items():
        assert len(block) < MOST_LINES_OF_ONE, name
        assert max(map(len, block)) < WIDEST, name
        missing = [said for said in SAID[name] if not any(said in line for line in block)]
        assert not missing, name


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
