"""Datasets prepared from the conformance vectors, once per test run, for tests that grade."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from competitions.model import Edition
from engine import prepare_competition
from tests.conformance.trees import VECTORS, Vector

_SCRATCH = tempfile.TemporaryDirectory(prefix="prepared-", ignore_cleanup_errors=True)


def prepared(competition_id: str, edition: Edition = "v1") -> Path:
    """The prepared folder of a competition; tests must not write to it."""
    return _prepare(competition_id, edition)


@cache
def _prepare(competition_id: str, edition: Edition) -> Path:
    vector = Vector(VECTORS / competition_id)
    base = Path(tempfile.mkdtemp(dir=_SCRATCH.name))
    raw = vector.unpack_raw(base / "raw")
    return prepare_competition(
        competition_id, data_dir=base / "data", raw=raw, edition=edition, parameters=vector.parameters
    )
