"""Raw data of the conformance vectors after a change, and what preparing them gives or says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions.model import Edition
from mlebench_console.foundation.problems import DataProblem
from tests.conformance.trees import VECTORS, Vector


def prepared_after(
    change: Callable[[Path], None], competition_id: str, edition: Edition, folder: Path
) -> Path:
    """The prepared folder made of raw data that `change` was let loose on."""
    vector = Vector(VECTORS / competition_id)
    raw = vector.unpack_raw(folder / f"raw-{edition}")
    change(raw)
    return prepare_competition(
        competition_id, data_dir=folder / "data", raw=raw, edition=edition, parameters=vector.parameters
    )


def refused(competition_id: str, raw: Path, folder: Path, edition: Edition = "v1") -> str:
    """What the preparation says of raw data that it refuses; it must have left no dataset."""
    with pytest.raises(DataProblem) as caught:
        prepare_competition(
            competition_id,
            data_dir=folder / "data",
            raw=raw,
            edition=edition,
            parameters=Vector(VECTORS / competition_id).parameters,
        )
    assert not list((folder / "data").rglob("prepared*"))
    return str(caught.value)
