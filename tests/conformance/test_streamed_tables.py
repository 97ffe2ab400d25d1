"""Tables that are too large for memory come to the same as if they had been held."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.kit.tables import large_tables
from mlebench_console.competitions.model import Edition
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector

LARGE = (
    "facebook-recruiting-iii-keyword-extraction",
    "h-and-m-personalized-fashion-recommendations",
    "new-york-city-taxi-fare-prediction",
    "text-normalization-challenge-english-language",
    "text-normalization-challenge-russian-language",
)


@pytest.mark.parametrize(
    ("competition_id", "edition"),
    [
        (competition_id, edition)
        for competition_id in LARGE
        for edition in ("v1", "corrected")
        if edition == "v1" or not registry.get(competition_id).excluded
    ],
)
def test_a_streamed_table_gives_what_a_held_one_gives(
    competition_id: str, edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_tables, "_SMALL", 0)
    monkeypatch.setattr(large_tables, "_ROWS", 25)
    vector = Vector(VECTORS / competition_id)
    raw = vector.unpack_raw(tmp_path / "raw")
    made = prepare_competition(
        competition_id,
        data_dir=tmp_path / "data",
        raw=raw,
        edition=edition,
        parameters=vector.parameters,
    )
    held = prepared(competition_id, edition)
    names = [path.relative_to(held) for path in held.rglob("*.csv*")]
    assert names
    for name in names:
        assert contents(made / name) == contents(held / name), name


def contents(path: Path) -> list[bytes]:
    """What a file holds, or each member of a zip, whose own bytes tell the time."""
    if path.suffix != ".zip":
        return [path.read_bytes()]
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist()]
