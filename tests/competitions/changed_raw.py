"""Datasets prepared from raw data of the conformance vectors after a change, for defects the vectors don't show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from competitions.model import Edition
from engine import prepare_competition
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
