"""Tables that are too large for memory come to the same as if they had been held."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions.kit import row_file
from competitions.model import Edition
from engine import prepare_competition
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector

LARGE = (
    "facebook-recruiting-iii-keyword-extraction",
    "h-and-m-personalized-fashion-recommendations",
    "new-york-city-taxi-fare-prediction",
    "tabular-playground-series-dec-2021",
)


@pytest.mark.parametrize("edition", ["v1", "corrected"])
@pytest.mark.parametrize("competition_id", LARGE)
def test_a_streamed_table_gives_what_a_held_one_gives(
    competition_id: str, edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_file, "_SMALL", 0)
    monkeypatch.setattr(row_file, "_BLOCK", 7)
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
    tables = [path.relative_to(held) for path in held.rglob("*.csv")]
    assert tables
    for name in tables:
        assert (made / name).read_bytes() == (held / name).read_bytes(), name
