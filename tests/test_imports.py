"""Imports go one way, and what starts up stays light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console import worlds

ROOT = Path(__file__).parent.parent
FLOORS = {
    "foundation": set[str](),
    "state": {"foundation"},
    "competitions": {"foundation"},
    "environment": {"foundation", "competitions"},
    "engine": {"foundation", "competitions", "state", "environment"},
    "console": {"foundation", "competitions", "state", "environment", "engine"},
}
SCREENS = {"textual", "typer", "rich"}
ENDS = (0, 1)  # done, or the answer is no
HEAVY = {
    "pandas",
    "numpy",
    "sklearn",
    "scipy",
    "docker",
    "kaggle",
    "textual",
    "psutil",
    "rich",
    "aiohttp",
    "PIL",
}
# What is asked again and again, by people and by scripts: it reads the state or a file, and needs no heavy library.
ASKED_OFTEN = (
    ("status",),
    ("watch", "--times", "1"),
    ("engine", "status"),
    ("sweep", "list"),
    ("runs", "list"),
    ("runs", "show", "1"),
    ("runs", "causes"),
    ("events",),
    ("datasets", "list"),
    ("competitions", "list"),
    ("placements", "list"),
    ("scoreboard",),
)


def imports_of(path: Path) -> Iterator[str]:
    """Yield the first part of each imported module's name, without the root of our own."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.removeprefix("mlebench_console.").partition(".")[0] for name in names)


@pytest.mark.parametrize("package", FLOORS)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    """Competitions' tasks are loaded by their path, so the import linter does not see them; this does."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in imports_of(path)
        if name in FLOORS and name != package and name not in FLOORS[package]
    ]
    assert wrong == []


@pytest.mark.parametrize("package", [package for package in FLOORS if package != "console"])
def test_what_does_the_work_knows_no_screen(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in imports_of(path)
        if name in SCREENS
    ]
    assert wrong == []


def modules_after(code: str) -> set[str]:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}\nimport json, sys; sys.stderr.write(json.dumps(sorted(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return {name.partition(".")[0] for name in json.loads(told.stderr)}


@pytest.mark.parametrize(
    "code",
    [
        "from mlebench_console.console.cli.program import run; run(['--help'])",
        "from mlebench_console.console.cli.program import run; run(['sweep', '--help'])",
        "from mlebench_console.console.cli.program import run; run(['grade-sample', '--help'])",
        "import mlebench_console, mlebench_console.competitions.registry, mlebench_console.engine.control.status",
        "import mlebench_console.engine.needs.standing",
    ],
    ids=["help", "help of a group", "help of a command", "packages", "needs"],
)
def test_starting_up_loads_nothing_heavy(code: str) -> None:
    assert modules_after(code) & HEAVY == set()


def test_the_help_of_no_command_loads_anything_heavy() -> None:
    run = "from mlebench_console.console.cli.program import COMMANDS, run"
    assert modules_after(f"{run}\nfor command in COMMANDS: run([command, '--help'])") & HEAVY == set()


@pytest.mark.parametrize("words", ASKED_OFTEN, ids=" ".join)
def test_what_is_asked_often_loads_no_heavy_library(words: tuple[str, ...], tmp_path: Path) -> None:
    places = worlds.places_in(tmp_path)
    worlds.busy(places).database.close()
    flags = [
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
    ]
    code = f"from mlebench_console.console.cli.program import run; assert run({[*flags, *words]!r}) in {ENDS}"
    # Rich measures and styles the tables of commands.
    assert modules_after(code) & HEAVY <= {"rich"}


def test_the_first_frame_needs_no_state_and_no_engine() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import mlebench_console.console.app.run, sys; sys.stdout.write(' '.join(sys.modules))",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout.split()
    assert not {
        "sqlite3",
        "mlebench_console.state.records",
        "mlebench_console.engine.control",
        "mlebench_console.competitions.model",
    } & set(loaded)


def test_help_loads_no_command() -> None:
    code = "from mlebench_console.console.cli.program import run; run(['--help'])"
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; sys.stderr.write(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    loaded = {name for name in told.stderr.split() if name.startswith("mlebench_console.")}
    assert loaded == {
        "mlebench_console.console",
        "mlebench_console.console.cli",
        "mlebench_console.console.cli.common",
        "mlebench_console.console.cli.output",
        "mlebench_console.console.cli.program",
        "mlebench_console.foundation",
        "mlebench_console.foundation.problems",
    }
