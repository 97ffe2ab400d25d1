"""Read straight from Kaggle's zip, raw data come to the same as from a folder, and nothing more lies on the disk."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.kit.tables import large_tables
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.prepared import prepared
from tests.conformance.disk import watched
from tests.conformance.trees import VECTORS, Vector, describe

AVAILABLE = [
    Vector(VECTORS / competition_id)
    for competition_id in registry.all_ids()
    if registry.get(competition_id).available
]


def zip_of(raw: Path, target: Path) -> Path:
    """The zip as Kaggle would deliver it: everything deflated, archives within it too."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(
        target, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False
    ) as archive:
        for path in sorted(raw.rglob("*")):
            archive.write(path, path.relative_to(raw).as_posix())
    return target


@pytest.mark.parametrize(
    ("vector", "edition"),
    [
        pytest.param(vector, edition, id=f"{vector.id}-{edition}")
        for vector in AVAILABLE
        for edition in EDITIONS
        if not (edition == "corrected" and registry.get(vector.id).excluded)
    ],
)
def test_a_zip_gives_what_a_folder_gives_and_never_takes_more_room_than_what_comes_of_it(
    vector: Vector, edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_folder = prepared(vector.id, edition)
    monkeypatch.setattr(large_tables, "_SMALL", 0)  # tables are streamed as large ones are
    raw = vector.unpack_raw(tmp_path / "raw")
    published = tmp_path / "data" / vector.id / "published"
    for file in registry.get(vector.id).published:  # which are not in Kaggle's zip
        published.mkdir(parents=True, exist_ok=True)
        (raw / file.name).rename(published / file.name)
    path = zip_of(raw, tmp_path / "data" / vector.id / f"{vector.id}.zip")
    with watched(tmp_path) as disk:
        folder = prepare_competition(
            vector.id,
            data_dir=tmp_path / "data",
            parameters=vector.parameters,
            verify=False,
            edition=edition,
        )
    expected = vector.expected
    assert describe(folder, expected) == describe(from_folder, expected)
    assert {found.name for found in path.parent.iterdir()} <= {
        path.name,
        folder.name,
        published.name,
        ".claim",
    }
    assert disk.peak <= sum(found.stat().st_size for found in folder.rglob("*") if found.is_file())
    assert not disk.elsewhere
