"""A run that holds the canary of another dataset shows where data went; its own says nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.engine.datasets.prepared import canaries
from mlebench_console.engine.integrity.facts import foreign_canaries
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import Finding, Severity
from tests.engine.integrity.made_runs import COMPETITION, SPEC, MadeRun, subject_of

OTHER = "leaf-classification"


@pytest.fixture
def carried(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The canaries of two prepared datasets."""
    made = {}
    for name in (COMPETITION, OTHER):
        folder = dataset_folder(registry.get(name), tmp_path / "data", "corrected")
        folder.public.mkdir(parents=True)
        made[name] = canaries.write(folder.public)
        folder.marker.write_text(json.dumps({canaries.PROPERTY: made[name]}))
    yield made


def found_in(state: Database, log: str, code: str = "") -> list[Finding]:
    spec = replace(SPEC, edition="corrected", data_dir=str(state.path.parent / "data"))
    return list(foreign_canaries(subject_of(state, MadeRun(log=log, code={"main.py": code}, spec=spec))))


def test_another_datasets_canary_is_found_with_its_line(state: Database, carried: dict[str, str]) -> None:
    (finding,) = found_in(state, "start\n", f"# from an old corpus\nid = '{carried[OTHER]}'\n")
    assert finding.severity is Severity.SUSPICIOUS
    assert finding.statement == f"it holds the canary of {OTHER}"
    (excerpt,) = finding.excerpts
    assert (excerpt.source, excerpt.first_line) == ("code/main.py", 2)


def test_its_own_canary_says_nothing(state: Database, carried: dict[str, str]) -> None:
    assert found_in(state, f"$ cat data/canary.txt\n{carried[COMPETITION]}\n", "dataset-canary-is-here") == []


@pytest.mark.usefixtures("carried")
def test_a_canary_of_nobody_here_is_noted(state: Database) -> None:
    (finding,) = found_in(state, f"dataset-canary-{'0' * 32}\n")
    assert finding.severity is Severity.NOTE
