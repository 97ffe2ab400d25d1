"""Whoever has Kaggle's data can compare what is made of them with what MLE-bench publishes, and share the report."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Checksums
from mlebench_console.engine import agreement, control
from mlebench_console.engine.agreement import examine, report_of
from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.engine.places import Places
from tests.conformance.trees import VECTORS, Vector
from tests.console.cli.conftest import Cli
from tests.kaggle.loopback import Loopback
from tools import reference

ID, GONE = "spaceship-titanic", "leaf-classification"


def test_a_doctor_downloads_prepares_compares_and_grades_to_the_end(
    loopback: Loopback, cli: Cli, places: Places, tmp_path: Path
) -> None:
    loopback.add(ID)
    loopback.add(GONE, gone=True)
    told = cli("datasets", "doctor", "--real", ID, GONE, "--output", tmp_path / "report.json")
    control.stop(places, with_runs=True)
    assert told.code == 3, told.err
    assert f"{ID}: differs" in told.out and f"{GONE}: " in told.out
    text = (tmp_path / "report.json").read_text()
    assert str(tmp_path) not in text and str(Path.home()) not in text
    found, gone = json.loads(text)["competitions"]
    # synthetic data: nothing is as published, but everything was compared and graded
    sums = {one["name"]: (one["published"], one["found"]) for one in found["sums"]}
    known = registry.get(ID).checksums
    assert sums[f"{ID}.zip"][0] == known.zip
    assert sums["private/test.csv"][0] == known.private["test.csv"]
    assert all(published and here and published != here for published, here in sums.values())
    assert (found["perfect"]["score"], found["perfect"]["medal"]) == (1.0, "gold")
    assert found["sample"]["score"] is not None
    assert "is not prepared" in gone["problem"]


def test_what_is_as_published_agrees_and_stands_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = Vector(VECTORS / ID).unpack_raw(tmp_path / "raw")
    prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    folder = dataset_folder(registry.get(ID), tmp_path / "data")
    (folder.root / f"{ID}.zip").write_bytes(b"zip")
    found = checksums.checksums_of(folder.prepared)
    md5 = checksums.zip_md5(folder.root / f"{ID}.zip")
    competition = dataclasses.replace(registry.get(ID), checksums=Checksums(md5, found.public, found.private))
    one = examine(competition, tmp_path / "data")
    assert one.agrees and one.compared == 5
    other = examine(registry.get(ID), tmp_path / "data")
    assert not other.agrees and len(other.differing) == 5
    (tmp_path / "verification").mkdir()
    shared = tmp_path / "verification" / "2026-05-alice.json"
    shared.write_text(json.dumps(dataclasses.asdict(report_of([one, other]))))
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    lines = reference.verification_text().splitlines()[-2:]
    report = "[2026-05-alice](verification/2026-05-alice.json)"
    assert lines == [
        f"| {ID} | {report} | 5 of 5 | 0.38462 | 1 gold | yes |",
        f"| {ID} | {report} | 0 of 5 | 0.38462 | 1 gold | no |",
    ]


def test_a_dataset_that_is_not_prepared_is_told_without_a_path(tmp_path: Path) -> None:
    found = agreement.examine(registry.get(ID), tmp_path / "data")
    assert found.problem and str(tmp_path) not in found.problem and not found.agrees
