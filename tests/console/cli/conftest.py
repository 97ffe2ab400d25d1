from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from console.cli.program import run
from engine.places import Places
from tests.conformance.trees import VECTORS, Vector


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def document(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def cli(places: Places, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command on a test's own places, as the program would."""
    flags = [
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
    ]

    def run_command(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        code = run([*flags, *map(str, arguments)])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def spooky(tmp_path: Path) -> Vector:
    """A small competition's vectors."""
    return Vector(VECTORS / "spooky-author-identification")


@pytest.fixture
def prepared(cli: Cli, spooky: Vector, tmp_path: Path) -> Vector:
    """The same, its dataset prepared by command."""
    raw = spooky.unpack_raw(tmp_path / "raw")
    done = cli("prepare", "-c", spooky.id, "--raw", raw)
    assert done.code == 0, done.err
    return spooky
