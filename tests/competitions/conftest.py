"""Preparation jobs on small folders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Edition
from mlebench_console.competitions.task import Preparation, merge_parameters


@dataclass(frozen=True)
class FolderPreparation(Preparation):
    """A preparation whose raw data lie in a folder, which a test may fill."""

    raw: Path


MakeJob = Callable[..., FolderPreparation]


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    """A function that makes a job with empty output folders below the test's own folder."""

    def make(
        competition_id: str = "spaceship-titanic", edition: Edition = "v1", **fields: Any
    ) -> FolderPreparation:
        competition = registry.get(competition_id)
        folders = {name: tmp_path / "job" / name for name in ("raw", "public", "private", "scratch")}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        parameters = merge_parameters(competition, None)
        return FolderPreparation(competition, edition, parameters, **(folders | fields))

    return make


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are made anew while the test runs, in their order."""
    names: list[str] = []
    plain = Path.open

    def noting(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if "x" in mode:
            names.append(path.name)
        return plain(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", noting)
    return names
