"""Datasets prepared from the conformance vectors, once per test run, for tests that grade."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from competitions import registry
from competitions.model import Edition
from engine import prepare_competition
from engine.layout import dataset_folder
from tests.conformance.trees import VECTORS, Vector
from tests.shared import made_once


def prepared(competition_id: str, edition: Edition = "v1") -> Path:
    """The prepared folder of a competition; tests must not write to it."""
    return _prepare(competition_id, edition)


@cache
def _prepare(competition_id: str, edition: Edition) -> Path:
    vector = Vector(VECTORS / competition_id)
    raw = made_once(f"raw/{competition_id}", vector.unpack_raw)

    def make(folder: Path) -> None:
        prepare_competition(
            competition_id, data_dir=folder, raw=raw, edition=edition, parameters=vector.parameters
        )

    data = made_once(f"prepared/{competition_id}-{edition}", make)
    return dataset_folder(registry.get(competition_id), data, edition).prepared
