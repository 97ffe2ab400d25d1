from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.console.cli.program import run
from mlebench_console.engine.places import Places
from tests.conformance.trees import VECTORS, Vector
from tests.shared import made_once


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def document(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Cli = Callable[..., Ran]


def flags_of(places: Places) -> list[str]:
    """Return the flags that have the program work on these places."""
    return [
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
    ]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Places of a test's own on the disk, as engines work there."""
    return Places(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state")


@pytest.fixture
def cli(places: Places, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command on a test's own places, as the program would."""

    def run_command(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        code = run([*flags_of(places), *map(str, arguments)])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def spooky() -> Vector:
    """A small competition's vectors."""
    return Vector(VECTORS / "spooky-author-identification")


@pytest.fixture
def prepared(spooky: Vector, places: Places) -> Vector:
    """The same, its dataset prepared by command."""

    def prepare(folder: Path) -> None:
        raw = spooky.unpack_raw(folder / "raw")
        first = Places(folder / "config.toml", folder / "data", folder / "state")
        assert run([*flags_of(first), "prepare", "-c", spooky.id, "--raw", str(raw)]) == 0

    shutil.copytree(made_once("prepared-by-command", prepare) / "data", places.data_dir)
    return spooky
